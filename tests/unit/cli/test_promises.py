"""What docs promise of all commands: exit codes, completion, colours and output formats."""

import os
import pathlib
import pty
import re
import shutil
import subprocess

import pytest

from notifier_kafka.cli.exits import Exit
from tests.shared import debian, terminal
from tests.shared.checkout import ROOT
from tests.unit.cli.cli_runner import CliRunner

DOCS = ROOT / "docs" / "commands.md"


def test_every_exit_code_is_documented() -> None:
    table = re.findall(r"^\| (\d+) \| ", DOCS.read_text(), re.MULTILINE)
    assert [int(code) for code in table] == [int(code) for code in Exit]


# Interactive shells, without the configuration files of the user.
SHELLS = {
    "bash": ["bash", "--norc", "-i"],
    "zsh": ["zsh", "-f", "-i"],
}


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_completes_commands_and_options(cli: CliRunner, shell: str, tmp_path: pathlib.Path) -> None:
    debian.program(shell, lambda: shutil.which(shell))
    script = _completion(cli, shell, tmp_path)
    begin = "autoload -U compinit && compinit -D -u; " if shell == "zsh" else ""
    ours, theirs = pty.openpty()
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TERM": "dumb", "PS1": "> "}
    with subprocess.Popen(SHELLS[shell], stdin=theirs, stdout=theirs, stderr=theirs, env=environment) as it:
        os.close(theirs)
        try:
            os.write(ours, f"{begin}source {script}\n".encode())
            # A word with one completion is completed in place. Ctrl-A puts echo before the line.
            typed = "notifier-kafka --transport-url x topics pu\t t --y\t"
            os.write(ours, f"{typed}\x01echo said: \n".encode())
            os.write(ours, b"exit\n")
            shown = b"".join(terminal.shown(ours)).decode(errors="replace")
        finally:
            it.kill()
            os.close(ours)
    assert "said: notifier-kafka --transport-url x topics purge t --yes" in shown.splitlines(), shown


def test_fish_completes_commands_and_options(cli: CliRunner, tmp_path: pathlib.Path) -> None:
    debian.program("fish", lambda: shutil.which("fish"))
    script = _completion(cli, "fish", tmp_path)

    def offered(typed: str) -> list[str]:
        asked = f"source {script}; complete -C 'notifier-kafka {typed}'"
        environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
        said = subprocess.run(
            ["fish", "--no-config", "-c", asked], capture_output=True, text=True, check=True, env=environment
        )
        assert said.stderr == ""
        return said.stdout.split()

    assert offered("--transport-url x topics ") == ["create", "delete", "list", "purge", "show"]
    assert offered("send --pub") == ["--publisher-id"]
    assert "config" in offered("co")


def _completion(cli: CliRunner, shell: str, directory: pathlib.Path) -> pathlib.Path:
    code, out, err = cli.run("complete", "--shell", shell)
    assert (code, err) == (0, "")
    script = directory / "completion"
    script.write_text(out)
    return script


def test_no_command_s_help_is_coloured_or_lacks_a_sentence(cli: CliRunner) -> None:
    assert {"doctor", "tail", "top", "config show", "listen"} <= set(_commands(cli))
    _, out, _ = cli.run("--help")
    for line in out.partition("commands:\n")[2].splitlines():
        assert "\x1b" not in line
        assert "cannot be loaded" not in line


# They print a file or a log as it is.
PLAIN = {"broker logs", "complete", "config import-json", "config sample", "help"}


def test_every_command_that_has_data_to_print_has_formats(cli: CliRunner) -> None:
    without = set()
    for command in _commands(cli):
        told = cli.run("help", *command.split())[1]
        choices = {each for found in re.findall(r"-f \{([a-z,]+)\}", told) for each in found.split(",")}
        if not (choices >= {"table", "json", "csv", "value"} and "--json" in told):
            without.add(command)
    assert without == PLAIN


def test_one_thing_is_csv_too(cli: CliRunner) -> None:
    cli.topic("t", 3)
    code, out, err = cli.run("topics", "show", "t", "-f", "csv", "-c", "name", "-c", "records")
    assert (code, out, err) == (0, '"name","records"\n"t",3\n', "")


def test_a_column_that_is_not_there(cli: CliRunner) -> None:
    cli.topic("t", 1)
    for command in (("topics", "list"), ("topics", "show", "t")):
        code, said = cli.refused(*command, "-c", "name", "-c", "size")
        assert code == 2
        assert "there is no column 'size'; the columns are name, " in said


def test_a_list_of_nothing_says_what_there_could_be(cli: CliRunner) -> None:
    code, out, err = cli.run("topics", "list")
    assert (code, err) == (0, "")
    assert "| name | partitions | records |" in out
    assert cli.run("topics", "list", "-f", "value")[1].strip() == ""


def _commands(cli: CliRunner) -> list[str]:
    _, out, _ = cli.run("--help")
    return [line[2:24].strip() for line in out.partition("commands:\n")[2].splitlines() if line[:2] == "  "]
