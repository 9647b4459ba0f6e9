"""The framework's own options, and the one way in which any group of options is read.

oslo.messaging's groups are registered beside ours with the same options, so that a
file and a ``set_override`` written for it keep their meaning; ours wins where set.
"""

import contextlib
import difflib
import os
import pathlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from oslo_config import cfg

from notifier_kafka import config_files
from notifier_kafka.errors import ConfigurationError, DriverLoadFailure

NOTIFICATIONS = "notifications"
LISTENER = "listener"
OSLO_NOTIFICATIONS = "oslo_messaging_notifications"

# What oslo.config raises for a value that cannot be read. NoSuchOptError is what becomes of
# any other error under way, and stands for a $name of no option.
UNREADABLE = (cfg.TemplateSubstitutionError, cfg.NoSuchOptError, ValueError)


class _SharedOpt(cfg.StrOpt):
    """An option that oslo.messaging has too, in other words.

    A program may use that for RPC and this for notifications, with one configuration:
    whoever registers second must not be told that the option is there already.
    """

    def __eq__(self, other: object) -> bool:
        return isinstance(other, cfg.StrOpt) and self.dest == other.dest

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = object.__hash__


TRANSPORT_URL = _SharedOpt(
    "transport_url",
    secret=True,
    sample_default="sqlite:////home/me/.local/share/notifier-kafka/notifications.db",
    help="Where notifications travel: "
    "driver://[user:pass@]host:port[,host:port...]/virtual_host?query. "
    "Without it an SQLite log in the user's data directory is used.",
)

DEFAULT_OPTS: list[cfg.Opt] = [
    TRANSPORT_URL,
    _SharedOpt(
        "control_exchange",
        default="openstack",
        help="Accepted for configurations of oslo.messaging; takes no part in notifications.",
    ),
]

NOTIFICATION_OPTS = [
    cfg.MultiStrOpt(
        "driver",
        default=[],
        help="What becomes of a notification, several at once: messaging, messagingv2, "
        "cloudevents, log, noop, test, routing, or a channel of another distribution. "
        "Without one nothing is sent.",
    ),
    cfg.StrOpt(
        "transport_url",
        secret=True,
        help="Where notifications travel, when not over [DEFAULT] transport_url.",
    ),
    cfg.ListOpt("topics", default=["notifications"], help="The topics that notifications go to."),
    cfg.IntOpt(
        "retry",
        default=-1,
        min=-1,
        help="How often a notification is sent again after an error that may pass: 0 never, -1 for "
        "ever, which outlasts any timeout of a driver's ([drivers_kafka] delivery_timeout).",
    ),
    cfg.StrOpt(
        "key",
        default="publisher_id",
        help="What orders notifications; those with the same key stay in order: publisher_id, "
        "event_type, payload:FIELD, none, or a key function of another distribution.",
    ),
    cfg.BoolOpt(
        "envelope",
        default=True,
        help="Wrap notifications as oslo.messaging does. Its listeners need it; without it "
        "a notification takes about a fifth fewer bytes and any JSON reader can use it.",
    ),
    cfg.StrOpt(
        "cloudevents_mode",
        default="binary",
        choices=["binary", "structured"],
        help="How the channel cloudevents writes: attributes as headers, or all in the value.",
    ),
    cfg.StrOpt("routing_config", default="", help="The YAML file of the channel routing."),
    cfg.StrOpt(
        "on_full",
        sample_default="spool with a spool_dir, else block",
        choices=["spool", "block", "drop_newest", "drop_oldest", "raise"],
        help="What happens when the outbox is full: notifications go to a file in spool_dir, also when "
        "the log is away, and from there to the log; or the call waits for block_timeout; or the new "
        "or the oldest notification is dropped; or the call raises. Every drop is counted and logged.",
    ),
    cfg.StrOpt(
        "spool_dir",
        help="A directory on a local disk for what cannot be sent at the moment. Processes may share "
        "it when they publish to the same log.",
    ),
    cfg.FloatOpt(
        "spool_after",
        default=2.0,
        min=0.1,
        help="Seconds without an acknowledgement after which notifications go to the spool.",
    ),
    cfg.IntOpt(
        "spool_bytes",
        default=1024 * 1024 * 1024,
        min=1024 * 1024,
        help="Bytes that the spool file of a process may take; then its oldest notifications are dropped.",
    ),
    cfg.FloatOpt(
        "spool_age",
        default=3 * 24 * 3600.0,
        min=0,
        help="Age in seconds at which a notification in the spool is dropped instead of being sent.",
    ),
    cfg.FloatOpt(
        "block_timeout",
        default=0.04,
        min=0,
        help="Seconds that a call waits at most for room in a full outbox, or in memory before the "
        "spool's disk. Once one waited in vain, those after it do not wait until there is room again.",
    ),
    cfg.IntOpt(
        "outbox_records",
        default=100_000,
        min=1,
        help="How many notifications wait at most to be handed to the log.",
    ),
    cfg.IntOpt(
        "outbox_bytes",
        default=64 * 1024 * 1024,
        min=1,
        help="How many bytes of notifications wait at most to be handed to the log.",
    ),
    cfg.FloatOpt(
        "wait_timeout",
        default=30.0,
        min=0,
        help="Seconds that a call of a notifier prepared with wait=True waits to be durable.",
    ),
    cfg.FloatOpt(
        "exit_timeout",
        default=5.0,
        min=0,
        help="Seconds that the interpreter's exit waits for what is unsent. The rest goes to the spool.",
    ),
]

LISTENER_OPTS = [
    cfg.StrOpt(
        "group",
        sample_default="the name of the program",
        help="The group of listeners without a pool. Members of a group share the work.",
    ),
    cfg.StrOpt(
        "start",
        default="earliest",
        choices=["earliest", "latest"],
        help="Where a group that has no position begins.",
    ),
    cfg.IntOpt(
        "batch_size",
        default=500,
        min=1,
        help="How many notifications are fetched at once, and how many a batch endpoint gets "
        "at most when its listener does not say.",
    ),
    cfg.FloatOpt(
        "requeue_delay",
        default=1.0,
        min=0,
        help="Seconds before a notification that an endpoint refused comes back.",
    ),
    cfg.FloatOpt(
        "requeue_delay_max",
        default=60.0,
        min=0,
        help="Seconds up to which that time doubles with every attempt, for a notification over "
        "which an endpoint raises.",
    ),
    cfg.IntOpt(
        "max_attempts",
        default=5,
        min=1,
        help="How often an endpoint may raise over one notification before it is set aside in "
        "the group's dead-letter topic.",
    ),
    cfg.StrOpt(
        "delivery",
        default="at-least-once",
        choices=["at-least-once", "at-most-once"],
        help="Whether a position is committed after the endpoints returned, so that a crash repeats "
        "what was under way, or before they are called, so that a crash loses it. At most once, "
        "nothing comes back: what an endpoint raises over is set aside at once.",
    ),
    cfg.IntOpt(
        "workers",
        default=1,
        min=1,
        help="How many notifications, or lists of them, are handled at a time, each on a thread of "
        "its own. What was fetched at once is shared out among them.",
    ),
    cfg.BoolOpt(
        "ordered",
        default=True,
        help="Several workers keep the order of notifications with the same key. Without it any "
        "free worker takes the next.",
    ),
    cfg.IntOpt(
        "dedupe_window",
        default=0,
        min=0,
        help="How many message ids of handled notifications a listener remembers, so as not to give "
        "one that arrives twice to the endpoints again; 0 for none.",
    ),
]


def list_opts() -> list[tuple[str | None, list[cfg.Opt]]]:
    """List the framework's options for oslo-config-generator."""
    return [(None, DEFAULT_OPTS), (NOTIFICATIONS, NOTIFICATION_OPTS), (LISTENER, LISTENER_OPTS)]


def register(conf: cfg.ConfigOpts) -> None:
    """Register the framework's options; again is harmless."""
    conf.register_opts(DEFAULT_OPTS)
    conf.register_opts(NOTIFICATION_OPTS, group=NOTIFICATIONS)
    # oslo.messaging, used for something else in this program, may have registered a part of them.
    there = OSLO_NOTIFICATIONS in conf
    missing = [opt for opt in NOTIFICATION_OPTS if not there or opt.dest not in conf[OSLO_NOTIFICATIONS]]
    conf.register_opts(missing, group=OSLO_NOTIFICATIONS)
    conf.register_opts(LISTENER_OPTS, group=LISTENER)


def notifications(conf: cfg.ConfigOpts) -> SimpleNamespace:
    """Read ``[notifications]``, with oslo.messaging's group where ours is silent."""
    register(conf)
    ours = read_group(conf, NOTIFICATIONS, NOTIFICATION_OPTS)
    _warn_of_slips(conf)
    for opt in NOTIFICATION_OPTS:
        if not _is_set(conf, NOTIFICATIONS, opt.name) and _is_set(conf, OSLO_NOTIFICATIONS, opt.name):
            setattr(ours, opt.name, _value(conf, OSLO_NOTIFICATIONS, opt))
    return ours


def listener(conf: cfg.ConfigOpts) -> SimpleNamespace:
    """Read ``[listener]``."""
    register(conf)
    return read_group(conf, LISTENER, LISTENER_OPTS)


def transport_url(conf: cfg.ConfigOpts) -> str:
    """Find the transport URL: of notifications, of the program, or the embedded log."""
    register(conf)
    url: str | None = notifications(conf).transport_url or _value(conf, None, TRANSPORT_URL)
    return url or f"sqlite:///{data_directory() / 'notifications.db'}"


def origin(conf: cfg.ConfigOpts, name: str) -> str:
    """Say where the value of an option of ``[notifications]`` comes from: "app.conf, [group] name"."""
    opt = next(opt for opt in NOTIFICATION_OPTS if opt.name == name)
    groups = [NOTIFICATIONS, OSLO_NOTIFICATIONS, *([None] if name == TRANSPORT_URL.name else [])]
    for group in groups:
        section = conf if group is None else conf[group]
        # An empty URL counts as none.
        if _is_set(conf, group, name) and (section[name] or name != TRANSPORT_URL.name):
            return _where(conf, group or "DEFAULT", TRANSPORT_URL if group is None else opt)
    return f"the default of [{'DEFAULT' if None in groups else NOTIFICATIONS}] {name}"


@contextlib.contextmanager
def blame(conf: cfg.ConfigOpts, name: str, given: object = None) -> Iterator[None]:
    """Let an error about the value of an option of ``[notifications]`` say where it comes from.

    Not when the value was ``given``, as an argument, instead of being read.
    """
    try:
        yield
    except (ConfigurationError, DriverLoadFailure) as error:
        if given is None:
            error.args = (f"{origin(conf, name)}: {error}",)
        raise


def data_directory() -> pathlib.Path:
    """Return the user's directory for data, as the XDG specification has it."""
    base = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return pathlib.Path(base).expanduser() / "notifier-kafka"


def set_transport_defaults(control_exchange: str) -> None:
    """Set the default of ``control_exchange``, for programs written for oslo.messaging."""
    cfg.set_defaults(DEFAULT_OPTS, control_exchange=control_exchange)


def read_group(
    conf: cfg.ConfigOpts,
    group: str,
    opts: Sequence[cfg.Opt],
    overrides: Mapping[str, str] | None = None,
) -> SimpleNamespace:
    """Read all options of a group at once, ``overrides`` (texts) first.

    A wrong value or an unknown name raises ``ConfigurationError`` with the file, the
    option and the valid choices. Fallbacks that oslo.config would keep silent about
    (a misspelt name in the file) are found here as well.
    """
    by_name = {opt.dest: opt for opt in opts}
    conf.register_opts(by_name.values(), group=group)
    old = [(o.group or group, o.name, opt.dest) for opt in opts for o in opt.deprecated_opts if o.name]
    here = by_name.keys() | {name for section, name, _ in old if section == group}
    for file in config_files.read(conf):
        _refuse_unknown(file.names(group), here, f"{file.path}, [{group}]")
    config_files.warn_of_slips(conf, group, here)
    for section in sorted({section for section, _, _ in old} - {group}):
        config_files.warn_of_slips(conf, section, {name for each, name, _ in old if each == section})
    # A URL written for oslo.messaging has oslo.messaging's names, whatever their group.
    current = {name: dest for _, name, dest in old} | {name: name for name in by_name}
    _refuse_unknown(overrides or {}, current.keys(), "the transport URL's query")
    values = {name: _value(conf, group, opt) for name, opt in by_name.items()}
    for name, text in (overrides or {}).items():
        values[current[name]] = _convert(by_name[current[name]], text)
    return SimpleNamespace(**values)


def _value(conf: cfg.ConfigOpts, group: str | None, opt: cfg.Opt) -> Any:
    section = conf if group is None else conf[group]
    try:
        value = section[opt.dest]
    except UNREADABLE as error:
        where = _where(conf, group or "DEFAULT", opt)
        raise ConfigurationError(f"{where}: {_reason(opt, error)}") from None
    return opt.default if value is None else value  # "name =" reads as None for a number


def _where(conf: cfg.ConfigOpts, group: str, opt: cfg.Opt) -> str:
    """Say where a wrong value stands: oslo.config puts an internal object in that place."""
    names = [(group, opt.dest), *((old.group or group, old.name) for old in opt.deprecated_opts)]
    found = [
        (file.path, section, name)
        for file in config_files.read(conf)
        for section, name in reversed(names)
        if name in file.names(section)
    ]
    if not found or not _may_be_of_a_file(conf, group, opt.dest):
        return f"the environment or a call, [{group}] {opt.dest}"
    # The last file that sets an option wins, but the values of several add up.
    path, section, name = found[-1]
    paths = dict.fromkeys(str(each) for each, _, _ in found) if opt.multi else [str(path)]
    return f"{' and '.join(paths)}, [{section}] {name}"


def _may_be_of_a_file(conf: cfg.ConfigOpts, group: str, name: str) -> bool:
    try:
        location = conf.get_location(name, group=None if group == "DEFAULT" else group)
    except UNREADABLE:
        return True
    return location is None or location.location is cfg.Locations.user


def _reason(opt: cfg.Opt, error: Exception) -> str:
    if not isinstance(error, ValueError):
        return "a $ in a value stands for another option; write $$ for a dollar sign"
    if opt.secret:
        return "the value is not valid"
    # oslo.config has the reason behind the last colon-space; for numbers it is Python's own
    # words, which mean nothing to the author of an INI file.
    reason = str(error).rsplit("is not valid: ", 1)[-1]
    shown = reason.rpartition(": ")[2]
    if reason.startswith("invalid literal for int"):
        return f"{shown} is not a whole number"
    if reason.startswith("could not convert string to float"):
        return f"{shown} is not a number"
    return reason


def _warn_of_slips(conf: cfg.ConfigOpts) -> None:
    known = {opt.dest for opt in NOTIFICATION_OPTS}
    if config_files.warn_of_slips(conf, OSLO_NOTIFICATIONS, known):
        config_files.warn_of_unknown(conf, OSLO_NOTIFICATIONS, known)
        config_files.warn_of_slips(conf, "DEFAULT", {TRANSPORT_URL.name})
        config_files.warn_of_default(conf, TRANSPORT_URL.name)


def _is_set(conf: cfg.ConfigOpts, group: str | None, name: str) -> bool:
    try:
        location = conf.get_location(name, group=group)
    except UNREADABLE:
        return True  # wrongly; reading it says how
    return location is not None and location.location is not cfg.Locations.opt_default


def _convert(opt: cfg.Opt, text: str) -> Any:
    try:
        value = opt.type(text)
    except ValueError as error:
        reason = _reason(opt, error)
        raise ConfigurationError(f"the transport URL's query, {opt.name}: {reason}") from None
    return opt.default if value is None else value


def _refuse_unknown(names: Iterable[str], known: Collection[str], where: str) -> None:
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean {near[0]}? " if near else ""
            raise ConfigurationError(
                f"{where}: unknown option {name!r}: {hint}known are {', '.join(sorted(known))}"
            )
