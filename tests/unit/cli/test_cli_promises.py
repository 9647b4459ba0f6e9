"""What is said of all commands: exit codes in the documentation, completion, colour, what a reader gets."""

import pathlib
import re
import subprocess

from cli_bench import Bench

from notifier_kafka.cli.exits import Exit

DOCS = pathlib.Path(__file__).parents[3] / "docs" / "commands.md"


def test_every_exit_code_is_documented() -> None:
    table = re.findall(r"^\| (\d+) \| ", DOCS.read_text(), re.MULTILINE)
    assert [int(code) for code in table] == [int(code) for code in Exit]


def test_the_completion_is_a_script_that_bash_can_read_and_knows_the_commands(bench: Bench) -> None:
    code, out, err = bench.run("complete")
    assert (code, err) == (0, "")
    script = out + (
        'COMP_WORDS=(notifier-kafka config ""); COMP_CWORD=2\n'
        '_get_comp_words_by_ref() { words=("${COMP_WORDS[@]}"); cur="${words[$COMP_CWORD]}"; }\n'
        '_notifier_kafka; echo "${COMPREPLY[@]}"\n'
    )
    said = subprocess.run(["bash"], input=script, capture_output=True, text=True, check=True)
    assert said.stderr == ""
    assert said.stdout.split() == ["import-json", "sample", "show", "validate"]


def test_no_command_s_help_is_coloured_or_lacks_a_sentence(bench: Bench) -> None:
    assert {"doctor", "tail", "top", "config show", "listen"} <= set(_commands(bench))
    _, out, _ = bench.run("--help")
    for line in out.partition("commands:\n")[2].splitlines():
        assert "\x1b" not in line
        assert "cannot be loaded" not in line


# What they print is a file or a log as it is.
PLAIN = {"broker logs", "complete", "config import-json", "config sample", "help"}


def test_every_command_that_has_data_to_print_has_formats(bench: Bench) -> None:
    without = set()
    for command in _commands(bench):
        told = bench.run("help", *command.split())[1]
        choices = {each for found in re.findall(r"-f \{([a-z,]+)\}", told) for each in found.split(",")}
        if not (choices >= {"table", "json", "csv", "value"} and "--json" in told):
            without.add(command)
    assert without == PLAIN


def test_one_thing_is_csv_too(bench: Bench) -> None:
    bench.topic("t", 3)
    code, out, err = bench.run("topics", "show", "t", "-f", "csv", "-c", "name", "-c", "records")
    assert (code, out, err) == (0, '"name","records"\n"t",3\n', "")


def test_a_list_of_nothing_says_what_there_could_be(bench: Bench) -> None:
    code, out, err = bench.run("topics", "list")
    assert (code, err) == (0, "")
    assert "| name | partitions | records |" in out
    assert bench.run("topics", "list", "-f", "value")[1].strip() == ""


def _commands(bench: Bench) -> list[str]:
    _, out, _ = bench.run("--help")
    return [line[2:24].strip() for line in out.partition("commands:\n")[2].splitlines() if line[:2] == "  "]
