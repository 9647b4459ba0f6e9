"""The framework's own options, and those of oslo.messaging beside them.

oslo.messaging's groups are registered beside ours with the same options, so that a
file and a ``set_override`` written for it keep their meaning; ours wins where set.
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
    """An option that oslo.messaging has too, in other words.

    A program may use that for RPC and this for notifications, with one configuration:
    whoever registers second must not be told that the option is there already.
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
    help="Where notifications travel: "
    "driver://[user:pass@]host:port[,host:port...]/virtual_host?query. "
    "Without it an SQLite log in the user's data directory is used.",
)

DEFAULT_OPTS: list[cfg.Opt] = [
    TRANSPORT_URL,
    _SharedStr(
        "control_exchange",
        default="openstack",
        help="Accepted for configurations of oslo.messaging; takes no part in notifications.",
    ),
]

NOTIFICATION_OPTS: list[cfg.Opt] = [
    _SharedMultiStr(
        "driver",
        default=[],
        help="What becomes of a notification, several at once: messaging, messagingv2, "
        "cloudevents, log, noop, test, routing, or a channel of another distribution. "
        "Without one nothing is sent.",
    ),
    _SharedStr(
        "transport_url",
        secret=True,
        help="Where notifications travel, when not over [DEFAULT] transport_url.",
    ),
    _SharedList("topics", default=["notifications"], help="The topics that notifications go to."),
    _SharedInt(
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
        help="Seconds that the interpreter's exit waits for what is unsent, however many publishers there "
        "are; closing takes a second more at most. The rest goes to the spool.",
    ),
]

LISTENER_OPTS: list[cfg.Opt] = [
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


def notifications(conf: cfg.ConfigOpts) -> NotificationSettings:
    """Read ``[notifications]``, with oslo.messaging's group where ours is silent."""
    register(conf)
    ours = reading.read_group(conf, NOTIFICATIONS, NOTIFICATION_OPTS)
    _warn_of_slips(conf)
    is_set = reading.is_set
    for opt in NOTIFICATION_OPTS:
        if not is_set(conf, NOTIFICATIONS, opt.name) and is_set(conf, OSLO_NOTIFICATIONS, opt.name):
            ours[opt.dest] = reading.value(conf, OSLO_NOTIFICATIONS, opt)
    return NotificationSettings(**ours)


class ListenerPolicy(TypedDict, total=False):
    """What a listener may have otherwise than ``[listener]`` says."""

    start: str
    delivery: str
    workers: int
    ordered: bool
    dedupe_window: int
    max_attempts: int
    requeue_delay: float
    requeue_delay_max: float


def listener(conf: cfg.ConfigOpts, policy: ListenerPolicy | None = None) -> ListenerSettings:
    """Read ``[listener]``, with what ``policy`` says in its place."""
    register(conf)
    found = reading.read_group(conf, LISTENER, LISTENER_OPTS)
    opts = [opt for opt in LISTENER_OPTS if opt.dest in ListenerPolicy.__annotations__]
    return ListenerSettings(**found | reading.given(opts, policy or {}, "the policy of a listener"))


def transport_url(conf: cfg.ConfigOpts) -> str:
    """Find the transport URL: of notifications, of the program, or the embedded log."""
    register(conf)
    url: str | None = notifications(conf).transport_url or reading.value(conf, None, TRANSPORT_URL)
    return url or log_url(data_directory() / "notifications.db")


def log_url(log: pathlib.Path) -> str:
    """Spell the URL of an embedded log, with what a URL would end its path at percent-encoded."""
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
    try:
        return pathlib.Path(base).expanduser() / "notifier-kafka"
    except RuntimeError:  # of a user without an entry in the system's list, as in containers
        raise ConfigurationError(
            f"user {os.getuid()} has no home directory for the embedded log: "
            "set [DEFAULT] transport_url, or XDG_DATA_HOME in the environment"
        ) from None


def set_transport_defaults(control_exchange: str) -> None:
    """Set the default of ``control_exchange``, for programs written for oslo.messaging."""
    cfg.set_defaults(DEFAULT_OPTS, control_exchange=control_exchange)


def _warn_of_slips(conf: cfg.ConfigOpts) -> None:
    known = {opt.dest for opt in NOTIFICATION_OPTS}
    if ini_files.warn_of_slips(conf, OSLO_NOTIFICATIONS, known):
        ini_files.warn_of_unknown(conf, OSLO_NOTIFICATIONS, known)
        ini_files.warn_of_slips(conf, "DEFAULT", {TRANSPORT_URL.name})
        ini_files.warn_of_default(conf, TRANSPORT_URL.name)
