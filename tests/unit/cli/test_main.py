"""The program around the commands: help, usage errors, configuration, and what it imports."""

import logging
import pathlib
import subprocess
import sys
from collections.abc import Callable

import pytest

from notifier_kafka.cli import main
from notifier_kafka.version import __version__

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*argv: str) -> tuple[int, str, str]:
        code = main.main(argv)
        captured = capsys.readouterr()
        return int(code), captured.out, captured.err

    return call


@pytest.mark.parametrize("argv", [(), ("--help",), ("-h",), ("help",)])
def test_help_names_the_commands_on_stdout(run: Run, argv: tuple[str, ...]) -> None:
    code, out, err = run(*argv)
    assert (code, err) == (0, "")
    for command in ("send", "listen", "topics list", "drivers list", "demo", "--config-file"):
        assert command in out
    assert "cannot be loaded" not in out
    assert "\x1b" not in out


@pytest.mark.parametrize("argv", [("send", "--help"), ("send", "--topic", "x", "-h"), ("help", "send")])
def test_help_of_a_command(run: Run, argv: tuple[str, ...]) -> None:
    code, out, err = run(*argv)
    assert (code, err) == (0, "")
    assert "usage: notifier-kafka send" in out
    assert "--event-type" in out


def test_a_group_of_commands_helps_with_its_own(run: Run) -> None:
    code, out, _ = run("topics", "--help")
    assert code == 0
    assert "topics list" in out
    assert "drivers list" not in out


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("tpics", "list"), "did you mean topics?"),
        (("listn",), "did you mean listen?"),
        (("list",), "did you mean dead-letters list or drivers list or groups list or topics list?"),
        (("topics", "p", "t"), "topics is a group of commands; say which: topics create"),
        (("topics",), "say which: topics create, topics delete, topics list, topics purge, topics show"),
        (("--nonsense",), "unknown option --nonsense"),
        (("send",), "send: the following arguments are required: PAYLOAD"),
        (("send", "--topic"), "expected one argument"),
        (("send", "{", "--transport-url", "sqlite://"), "PAYLOAD is not JSON"),
        (("send", "1", "--priority", "loud"), "invalid choice: 'loud'"),
        (("listen", "--from", "yesterday"), "none of beginning, end, -N or a time"),
        (("listen", "--max", "0"), "is not a whole number above zero"),
        (("listen", "surplus"), "unrecognized arguments: surplus"),
        (("topics", "list", "-f", "xml"), "invalid choice: 'xml'"),
    ],
)
def test_a_usage_error_is_one_line_on_stderr(run: Run, argv: tuple[str, ...], said: str) -> None:
    code, out, err = run(*argv)
    assert (code, out) == (2, "")
    assert err.startswith("notifier-kafka: ")
    assert said in err
    assert err.count("\n") == 1


def test_configuration_errors(run: Run, tmp_path: pathlib.Path) -> None:
    broken = tmp_path / "broken.conf"
    broken.write_text("[notifications\n")
    misspelt = tmp_path / "misspelt.conf"
    misspelt.write_text("[notifications]\ndrivr = messaging\n")
    for argv, said in [
        (("--config-file", str(tmp_path / "none")), "none"),
        (("--config-file", str(broken)), "broken.conf"),
        (("--config-file", str(misspelt)), "did you mean driver?"),
        (("--transport-url", "nowhere://x"), "nowhere"),
        (("--transport-url", "just words"), "just words"),
    ]:
        code, out, err = run("topics", "list", *argv)
        assert (code, out) == (5, "")
        assert said in err
        assert err.count("\n") == 1


def test_a_password_in_the_url_is_not_shown(run: Run) -> None:
    code, out, err = run("topics", "list", "--transport-url", "nowhere://me:hunter2@h/x", "-vv")
    assert code == 5
    assert "hunter2" not in out + err


@pytest.mark.parametrize("debug", [(), ("--debug",)])
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[DEFAULT]\n transport_url = kafka://me:hunter2@h/\n", "app.conf, line 2: Unexpected continuation"),
        ("[DEFAULT]\nhunter2\n", "app.conf, line 2: "),
        ("transport_url = kafka://me:hunter2@h/\n", "app.conf, line 1: Section must be started"),
        ("[hunter2\n", "app.conf, line 1: Invalid section"),
    ],
)
def test_a_line_that_cannot_be_read_is_not_shown(
    run: Run, tmp_path: pathlib.Path, text: str, said: str, debug: tuple[str, ...]
) -> None:
    path = tmp_path / "app.conf"
    path.write_text(text)
    code, out, err = run(*debug, "topics", "list", "--config-file", str(path))
    assert code == 5
    assert "hunter2" not in out + err
    assert said in err.splitlines()[-1]


def test_debug_shows_where_an_error_comes_from(run: Run) -> None:
    code, _, err = run("--debug", "topics", "list", "--transport-url", "nowhere://x")
    assert code == 5
    assert "Traceback" in err
    assert err.splitlines()[-1].startswith("notifier-kafka: ")


def test_the_version_is_said_without_loading_a_command() -> None:
    script = (
        "import sys\n"
        "from notifier_kafka.cli import main\n"
        "try:\n    main.main(['--version'])\n"
        "except SystemExit as end:\n    assert not end.code\n"
        "heavy = {'cmd2', 'prettytable', 'kafka', 'sqlite3', 'notifier_kafka.cli.commands.send'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ended.stdout.splitlines() == [f"notifier-kafka {__version__}", "[]"]


def test_a_log_message_cannot_steer_the_terminal(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    run("drivers", "list")
    logging.getLogger("elsewhere").warning("clear\x1b[2J \u202e%s", "over")
    shown = capsys.readouterr().err
    assert "clear\\x1b[2J \\u202eover" in shown
    assert shown.startswith("20")
    assert "Z WARNING elsewhere: " in shown


@pytest.mark.parametrize("argv", [("send", "1"), ("listen",)])
def test_a_broker_that_is_away_is_one_line_with_the_place_of_its_address(
    run: Run, tmp_path: pathlib.Path, argv: tuple[str, ...]
) -> None:
    path = tmp_path / "app.conf"
    path.write_text("[DEFAULT]\n# where\ntransport_url = kafka://127.0.0.1:1/?client=kafka-python\n")
    code, out, err = run("--config-file", str(path), *argv)
    assert (code, out) == (3, "")
    assert err.count("\n") == 1
    assert "127.0.0.1:1" in err
    assert f"({path}, line 3, [DEFAULT] transport_url; 'notifier-kafka doctor' checks more)" in err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[listener]\n\nworkers = some\n", "line 3, [listener] workers: 'some' is not a whole number"),
        ("[listener]\nworkrs = 2\n", "line 2, [listener]: unknown option 'workrs': did you mean workers?"),
        ("[notifications]\nkey = x\n", "line 2, [notifications] key: "),
    ],
)
def test_an_error_of_a_file_names_the_line(run: Run, tmp_path: pathlib.Path, text: str, said: str) -> None:
    path = tmp_path / "app.conf"
    path.write_text(text)
    argv = ("send", "1") if "key" in text else ("listen", "--pool", "p")
    code, _, err = run("--config-file", str(path), "--transport-url", "sqlite://", *argv)
    assert code == 5
    assert f"{path}, {said}" in err
