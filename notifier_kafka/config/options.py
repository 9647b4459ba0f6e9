"""The framework's options.

oslo.messaging's groups are registered too, with the same options, so that a file and a
``set_override`` written for it keep their meaning. Where ours is set, it wins.
"""

import contextlib
import os
import pathlib
import re
from collections.abc import Iterator
from typing import TypedDict
from urllib import parse

from oslo_config import cfg

from notifier_kafka.config import ini_files, reading
from notifier_kafka.config.settings import ListenerSettings, NotificationSettings
from notifier_kafka.errors import ConfigurationError, DriverLoadFailure

NOTIFICATIONS = "notifications"
LISTENER = "listener"
OSLO_NOTIFICATIONS = "oslo_messaging_notifications"


class _Shared:
    """An option that oslo.messaging has too, with another help text.

    A program may use oslo.messaging for RPC and this package for notifications, with one
    ``ConfigOpts``. The second one to register the option must not get an error.
    """

    def __eq__(self, other: object) -> bool:
        return isinstance(other, cfg.Opt) and self.dest == other.dest

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = object.__hash__

    dest: str


class _SharedStr(_Shared, cfg.StrOpt):
    pass


class _SharedMultiStr(_Shared, cfg.MultiStrOpt):
    pass


class _SharedList(_Shared, cfg.ListOpt):
    pass


class _SharedInt(_Shared, cfg.IntOpt):
    pass


TRANSPORT_URL = _SharedStr(
    "transport_url",
    secret=True,
    sample_default="sqlite:////home/me/.local/share/notifier-kafka/notifications.db",
    help="Where notifications are sent to and read from: "
    "driver://[user:pass@]host:port[,host:port...]/virtual_host?query. "
    "When it is not set, an SQLite log in the user's data directory is used.",
)

DEFAULT_OPTS: list[cfg.Opt] = [
    TRANSPORT_URL,
    _SharedStr(
        "control_exchange",
        default="openstack",
        help="Accepted for configurations of oslo.messaging. Has no effect on notifications.",
    ),
]

NOTIFICATION_OPTS: list[cfg.Opt] = [
    _SharedMultiStr(
        "driver",
        default=[],
        help="What is done with a notification: messaging, messagingv2, cloudevents, log, noop, test, "
        "routing, or a channel of another distribution. May be given several times. When it is not "
        "set, nothing is sent.",
    ),
    _SharedStr(
        "transport_url",
        secret=True,
        help="The transport URL for notifications, if it differs from [DEFAULT] transport_url.",
    ),
    _SharedList("topics", default=["notifications"], help="The topics that notifications are sent to."),
    _SharedInt(
        "retry",
        default=-1,
        min=-1,
        help="How often sending a notification is retried after a temporary error: 0 is never, -1 is "
        "without limit, whatever timeout the driver has ([drivers_kafka] delivery_timeout).",
    ),
    cfg.StrOpt(
        "key",
        default="publisher_id",
        help="The ordering key. Notifications with the same key stay in order: publisher_id, "
        "event_type, payload:FIELD, none, or a key function of another distribution.",
    ),
    cfg.BoolOpt(
        "envelope",
        default=True,
        help="Wrap notifications in oslo.messaging's envelope, which its listeners need. Without it "
        "a notification takes about a fifth fewer bytes, and any JSON reader can use it.",
    ),
    cfg.StrOpt(
        "cloudevents_mode",
        default="binary",
        choices=[
            ("binary", "the payload is the value, the attributes are headers"),
            ("structured", "attributes and payload are one JSON object, the value"),
        ],
        help="The form in which the channel cloudevents writes.",
    ),
    cfg.StrOpt("routing_config", default="", help="The path of the YAML file for the channel routing."),
    cfg.StrOpt(
        "on_full",
        sample_default="spool with a spool_dir, else block",
        choices=[
            (
                "spool",
                "notifications are written to a file in spool_dir, also while the log is unreachable, "
                "and sent from there later",
            ),
            ("block", "the call waits up to block_timeout for room (back-pressure), then drops"),
            ("drop_newest", "the new notification is dropped"),
            ("drop_oldest", "the oldest waiting notification is dropped"),
            ("raise", "the call raises OutboxFull"),
        ],
        help="What happens when the outbox is full. Every dropped notification is counted and logged.",
    ),
    cfg.StrOpt(
        "spool_dir",
        help="A directory on a local disk for notifications that cannot be sent now. Processes that "
        "publish to the same log may share it.",
    ),
    cfg.FloatOpt(
        "spool_after",
        default=2.0,
        min=0.1,
        help="Seconds without an acknowledgement after which notifications are written to the spool.",
    ),
    cfg.IntOpt(
        "spool_bytes",
        default=1024 * 1024 * 1024,
        min=1024 * 1024,
        help="The largest size in bytes of one process's spool. Above it, the oldest notifications are "
        "dropped.",
    ),
    cfg.FloatOpt(
        "spool_age",
        default=3 * 24 * 3600.0,
        min=0,
        help="The age in seconds at which a notification in the spool is dropped instead of sent.",
    ),
    cfg.FloatOpt(
        "block_timeout",
        default=0.04,
        min=0,
        help="The longest time in seconds that a call waits for room in a full outbox, or for a slow "
        "disk of the spool. After one call has waited this long without success, later calls do not "
        "wait until there is room again.",
    ),
    cfg.IntOpt(
        "outbox_records",
        default=100_000,
        min=1,
        help="The most notifications that may wait in memory to be sent.",
    ),
    cfg.IntOpt(
        "outbox_bytes",
        default=64 * 1024 * 1024,
        min=1,
        help="The most bytes of notifications that may wait in memory to be sent.",
    ),
    cfg.FloatOpt(
        "wait_timeout",
        default=30.0,
        min=0,
        help="The longest time in seconds that a call waits for its acknowledgement, if the notifier was "
        "prepared with wait=True.",
    ),
    cfg.FloatOpt(
        "exit_timeout",
        default=5.0,
        min=0,
        help="The longest time in seconds that the interpreter's exit waits for unsent notifications of "
        "all publishers. Closing takes at most one second more. The rest goes to the spool, if there is one.",
    ),
]

LISTENER_OPTS: list[cfg.Opt] = [
    cfg.StrOpt(
        "group",
        sample_default="the name of the program",
        help="The group of listeners that have no pool. The members of a group share the work.",
    ),
    cfg.StrOpt(
        "start",
        default="earliest",
        choices=[
            ("earliest", "the oldest notification that the log still has"),
            ("latest", "the next notification that is sent"),
        ],
        help="Where a group begins that has no committed position.",
    ),
    cfg.IntOpt(
        "batch_size",
        default=500,
        min=1,
        help="How many notifications are fetched at once. Also the most that a batch endpoint gets at "
        "once, if its listener does not set batch_size.",
    ),
    cfg.FloatOpt(
        "requeue_delay",
        default=1.0,
        min=0,
        help="Seconds until a notification is delivered again that an endpoint requeued or failed on.",
    ),
    cfg.FloatOpt(
        "requeue_delay_max",
        default=60.0,
        min=0,
        help="The longest backoff in seconds: requeue_delay doubles up to it with each attempt in which "
        "an endpoint raises.",
    ),
    cfg.IntOpt(
        "max_attempts",
        default=5,
        min=1,
        help="How often an endpoint may raise on one notification, a poison message. Then the notification "
        "is moved to the group's dead-letter topic.",
    ),
    cfg.StrOpt(
        "delivery",
        default="at-least-once",
        choices=[
            (
                "at-least-once",
                "positions are committed after the endpoints returned; after a crash, notifications "
                "that were being handled are delivered again",
            ),
            (
                "at-most-once",
                "positions are committed before the endpoints are called; a crash loses the "
                "notifications that were being handled, and a notification on which an endpoint "
                "raises becomes a dead letter at once",
            ),
        ],
        help="When positions are committed.",
    ),
    cfg.IntOpt(
        "workers",
        default=1,
        min=1,
        help="How many threads call endpoints at the same time, each with one notification or one list "
        "of notifications.",
    ),
    cfg.BoolOpt(
        "ordered",
        default=True,
        help="With several workers, keep the order of notifications with the same key. Otherwise any "
        "free worker takes the next notification.",
    ),
    cfg.IntOpt(
        "dedupe_window",
        default=0,
        min=0,
        help="How many message ids of handled notifications a listener remembers to deduplicate: a "
        "notification with one of these ids is not given to the endpoints again. 0 turns it off.",
    ),
]


def list_opts() -> list[tuple[str | None, list[cfg.Opt]]]:
    """List the framework's options for oslo-config-generator."""
    return [(None, DEFAULT_OPTS), (NOTIFICATIONS, NOTIFICATION_OPTS), (LISTENER, LISTENER_OPTS)]


def register(conf: cfg.ConfigOpts) -> None:
    """Register the framework's options. Calling it again is harmless."""
    conf.register_opts(DEFAULT_OPTS)
    conf.register_opts(NOTIFICATION_OPTS, group=NOTIFICATIONS)
    # oslo.messaging may have registered some of them, for another use in this program.
    there = OSLO_NOTIFICATIONS in conf
    missing = [opt for opt in NOTIFICATION_OPTS if not there or opt.dest not in conf[OSLO_NOTIFICATIONS]]
    conf.register_opts(missing, group=OSLO_NOTIFICATIONS)
    conf.register_opts(LISTENER_OPTS, group=LISTENER)


def notifications(conf: cfg.ConfigOpts) -> NotificationSettings:
    """Read ``[notifications]``; options not set there are read from oslo.messaging's group."""
    register(conf)
    ours = reading.read_group(conf, NOTIFICATIONS, NOTIFICATION_OPTS)
    _warn_of_misspellings(conf)
    is_set = reading.is_set
    for opt in NOTIFICATION_OPTS:
        if not is_set(conf, NOTIFICATIONS, opt.name) and is_set(conf, OSLO_NOTIFICATIONS, opt.name):
            ours[opt.dest] = reading.value(conf, OSLO_NOTIFICATIONS, opt)
    return NotificationSettings(**ours)


class ListenerPolicy(TypedDict, total=False):
    """The options of ``[listener]`` that a program may set for one listener."""

    start: str
    delivery: str
    workers: int
    ordered: bool
    dedupe_window: int
    max_attempts: int
    requeue_delay: float
    requeue_delay_max: float


def listener(conf: cfg.ConfigOpts, policy: ListenerPolicy | None = None) -> ListenerSettings:
    """Read ``[listener]``; what ``policy`` sets replaces it."""
    register(conf)
    found = reading.read_group(conf, LISTENER, LISTENER_OPTS)
    opts = [opt for opt in LISTENER_OPTS if opt.dest in ListenerPolicy.__annotations__]
    return ListenerSettings(**found | reading.given(opts, policy or {}, "the policy of a listener"))


def transport_url(conf: cfg.ConfigOpts) -> str:
    """Find the transport URL: that of notifications, else the program's, else the embedded log's."""
    register(conf)
    url: str | None = notifications(conf).transport_url or reading.value(conf, None, TRANSPORT_URL)
    return url or log_url(data_directory() / "notifications.db")


def log_url(log: pathlib.Path) -> str:
    """Return the URL of an embedded log. Characters that would end the path are percent-encoded."""
    return "sqlite:///" + re.sub(r"[%#?\t\r\n]", lambda found: parse.quote(found[0]), str(log))


def origin(conf: cfg.ConfigOpts, name: str) -> str:
    """Say where the value of an option of ``[notifications]`` comes from: "app.conf, [group] name"."""
    opt = next(opt for opt in NOTIFICATION_OPTS if opt.name == name)
    groups = [NOTIFICATIONS, OSLO_NOTIFICATIONS, *([None] if name == TRANSPORT_URL.name else [])]
    for group in groups:
        section = conf if group is None else conf[group]
        # An empty URL counts as none.
        if reading.is_set(conf, group, name) and (section[name] or name != TRANSPORT_URL.name):
            return reading.where(conf, group or "DEFAULT", TRANSPORT_URL if group is None else opt)
    return f"the default of [{'DEFAULT' if None in groups else NOTIFICATIONS}] {name}"


@contextlib.contextmanager
def blame(conf: cfg.ConfigOpts, name: str, given: object = None) -> Iterator[None]:
    """Add to an error about an option of ``[notifications]`` where its value comes from.

    Does nothing when the value was ``given`` as an argument.
    """
    try:
        yield
    except (ConfigurationError, DriverLoadFailure) as error:
        if given is None:
            error.args = (f"{origin(conf, name)}: {error}",)
        raise


def data_directory() -> pathlib.Path:
    """Return the user's data directory, as the XDG specification defines it."""
    base = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    try:
        return pathlib.Path(base).expanduser() / "notifier-kafka"
    except RuntimeError:  # the user has no entry in the password database, as in containers
        raise ConfigurationError(
            f"user {os.getuid()} has no home directory for the embedded log: "
            "set [DEFAULT] transport_url, or XDG_DATA_HOME in the environment"
        ) from None


def set_transport_defaults(control_exchange: str) -> None:
    """Set the default of ``control_exchange``, for programs written for oslo.messaging."""
    cfg.set_defaults(DEFAULT_OPTS, control_exchange=control_exchange)


def _warn_of_misspellings(conf: cfg.ConfigOpts) -> None:
    known = {opt.dest for opt in NOTIFICATION_OPTS}
    if ini_files.warn_of_misspelt_sections(conf, OSLO_NOTIFICATIONS, known):
        ini_files.warn_of_unknown_options(conf, OSLO_NOTIFICATIONS, known)
        ini_files.warn_of_misspelt_sections(conf, "DEFAULT", {TRANSPORT_URL.name})
        ini_files.warn_of_misspelt_default(conf, TRANSPORT_URL.name)
