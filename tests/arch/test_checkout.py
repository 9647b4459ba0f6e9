"""The checkout: the two commands, the samples, and what must not be written anywhere."""

import configparser
import os
import pathlib
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest

from notifier_kafka.publishing.channels import routing
from tests.shared.checkout import ROOT

ETC = ROOT / "etc" / "notifier_kafka"

# With a class of one letter, or this line would be found.
REGISTRY = re.compile(r"py[p]i\.org|python[h]osted|index-[u]rl|find-[l]inks|repo1?\.[m]aven")


def _files() -> Iterator[pathlib.Path]:
    """Yield the files of the checkout that git does not ignore; there may be no git here."""
    ignored = {line.rstrip("/") for line in (ROOT / ".gitignore").read_text().split()} | {".git"}
    for directory, below, names in os.walk(ROOT):
        below[:] = [name for name in below if name not in ignored and not name.endswith(".egg-info")]
        yield from (pathlib.Path(directory, name) for name in names)


def test_no_registry_address_in_any_file() -> None:
    files = [path for path in _files() if path.suffix not in {".png", ".db", ".pyc"} and path.is_file()]
    found = {
        f"{path.relative_to(ROOT)}: {address}"
        for path in files
        for address in REGISTRY.findall(path.read_text(errors="replace"))
    }

    assert len(files) > 40
    assert found == set()


def _commands() -> list[str]:
    """Return the one-line commands of the README that make an environment."""
    return re.findall(r"^python3 -m venv .*$", (ROOT / "README.md").read_text(), re.MULTILINE)


def test_readme_has_the_two_commands() -> None:
    demo, test = _commands()

    assert demo.endswith("notifier-kafka demo")
    assert test.endswith("tox")


def test_what_the_tests_install_for_root_is_told_to_the_others() -> None:
    told = [
        set(found.split())
        for name in ("README.md", "CONTRIBUTING.md")
        for found in re.findall(r"`apt-get install ([\w ]+)`", (ROOT / name).read_text())
    ]
    tests = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("*.py"))
    # The shell is a parameter of its test.
    needed = {"zsh", *re.findall(r'debian\.program\("(\w+)"', tests)}

    assert {"chromium", "postgresql"} <= needed
    assert told == [needed, needed]


def test_environment_of_the_commands_is_ignored_by_git() -> None:
    assert {command.split()[3] + "/" for command in _commands()} <= set(
        (ROOT / ".gitignore").read_text().split()
    )


def test_sample_configuration_is_fresh_and_needs_no_client_library(tmp_path: pathlib.Path) -> None:
    made = tmp_path / "made.sample"
    program = (
        "import sys\n"
        "for name in ('kafka', 'confluent_kafka', 'sqlite3', '_sqlite3', 'pyspark', 'pyarrow', 'orjson'):\n"
        "    sys.modules[name] = None\n"
        "from oslo_config import generator\n"
        "generator.main(['--config-file', sys.argv[1], '--output-file', sys.argv[2]])\n"
    )
    subprocess.run(
        [sys.executable, "-c", program, str(ETC / "notifier-config-generator.conf"), str(made)],
        check=True,
        cwd=ROOT,
    )

    assert (ETC / "notifier.conf.sample").read_text() == made.read_text(), "run: tox -e genconfig"


def test_sample_configuration_covers_every_room() -> None:
    parser = configparser.ConfigParser(delimiters=("=",))
    parser.read(ROOT / "setup.cfg")
    declared = {
        line.partition("=")[0].strip()
        for line in parser["options.entry_points"]["oslo.config.opts"].split("\n")
    }
    generated = re.findall(
        r"^namespace = (.*)$", (ETC / "notifier-config-generator.conf").read_text(), re.MULTILINE
    )

    assert set(generated) == declared - {""}


def test_sample_routing_is_valid() -> None:
    routes = routing.read_routes(str(ETC / "routing.yaml.sample"))

    assert {route.channel for route in routes} == {"messagingv2", "log"}


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "docs/rooms.md"])
def test_files_that_a_document_names_exist(name: str) -> None:
    text = (ROOT / name).read_text()
    named = set(
        re.findall(r"`((?:notifier_kafka|drivers|spark_sinks|tests|benchmarks|etc|docs)/[\w./-]*)`", text)
    )

    assert named
    assert {path for path in named if "_build" not in path and not (ROOT / path).exists()} == set()


def test_readme_has_less_than_eighty_lines() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) < 80


def test_first_page_of_the_documentation_says_of_each_page_what_it_is() -> None:
    pages = {path.name for path in (ROOT / "docs").glob("*.md")} - {"index.md"}
    described = re.findall(
        r"^- \[[^]]+\]\(([\w-]+\.md)\): \S.*", (ROOT / "docs" / "index.md").read_text(), re.MULTILINE
    )

    assert sorted(described) == sorted(pages)
