"""Runs the program in an environment without some distributions."""

import pathlib
import site
import subprocess
import sys
import sysconfig

START = (
    "import site, sys; site.addsitedir({0!r}); "
    "from notifier_kafka.cli.main import main; sys.exit(main(sys.argv[1:]))"
)


class BareSite:
    """Runs the program without some distributions, and with no Java except those of a test."""

    def __init__(self, home: pathlib.Path, *without: str) -> None:
        self.home = home
        self.environment = {"HOME": str(home), "PATH": ""}
        self.before: tuple[str, ...] = ()  # a command that runs the program in a namespace
        self._packages = home / "site-packages"
        self._packages.mkdir()
        places = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *site.getsitepackages()}
        for place in map(pathlib.Path, sorted(places)):
            for found in place.iterdir() if place.is_dir() else ():
                link = self._packages / found.name
                if not found.name.lower().replace("-", "_").startswith(without) and not link.exists():
                    link.symlink_to(found)

    def run(self, *argv: str) -> tuple[int, str, str]:
        command = [*self.before, sys.executable, "-S", "-c", START.format(str(self._packages)), *argv]
        ended = subprocess.run(
            command, capture_output=True, text=True, env=self.environment, cwd=self.home, check=False
        )
        return ended.returncode, ended.stdout, ended.stderr

    def java(self, directory: str, major: int) -> pathlib.Path:
        """Create a program that prints the version of a Java."""
        program = self.home / directory / "bin" / "java"
        program.parent.mkdir(parents=True)
        program.write_text(f"#!/bin/sh\necho 'openjdk version \"{major}.0.1\" 2026-01-01' >&2\n")
        program.chmod(0o755)
        return program
