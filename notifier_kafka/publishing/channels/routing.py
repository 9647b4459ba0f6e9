"""The channel routing: a YAML file decides which notifications go to which channels.

::

    group:
      channel:
        accepted_events: [compute.instance.*]     # shell patterns; absent: all
        accepted_priorities: [warn, error]        # absent: all

A notification goes to a channel only once, even if several groups send it there.
"""

import fnmatch
import logging
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import yaml
from oslo_config import cfg

from notifier_kafka.config import options
from notifier_kafka.contract import did_you_mean, plugins
from notifier_kafka.errors import ConfigurationError, DeliveryFailed, MessagingException
from notifier_kafka.notification import PRIORITIES, Notification
from notifier_kafka.publishing.channels.channel import NAMESPACE, Channel, Sending
from notifier_kafka.publishing.transport import NotificationTransport

LOG = logging.getLogger(__name__)

EVENTS = "accepted_events"
PRIORITY_RULE = "accepted_priorities"


class Route(NamedTuple):
    """What one group sends to one channel. None accepts everything."""

    channel: str
    events: "re.Pattern[str] | None"
    priorities: frozenset[str] | None

    def accepts(self, notification: Notification) -> bool:
        """Say whether both rules match. A notification without an event type matches only ``*``."""
        if self.priorities is not None and notification.priority.lower() not in self.priorities:
            return False
        return self.events is None or self.events.match(notification.event_type or "") is not None


class RoutingChannel(Channel):
    """Forwards notifications to other channels by event type and priority."""

    def __init__(self, conf: cfg.ConfigOpts, topics: Sequence[str], transport: NotificationTransport) -> None:
        super().__init__(conf, topics, transport)
        self._routes: dict[str, list[Route]] = {}
        path = options.notifications(conf).routing_config
        with options.blame(conf, "routing_config"):
            routes = read_routes(path)
        for route in routes:
            self._routes.setdefault(route.channel, []).append(route)
        self._channels: dict[str, Channel] = {
            name: plugins.load(NAMESPACE, name)(conf, topics, transport) for name in self._routes
        }
        self.publishes = any(each.publishes for each in self._channels.values())

    def send(self, notifications: Sequence[Notification], how: Sending) -> None:
        refusal: MessagingException | None = None
        for name, routes in self._routes.items():
            accepted = [sent for sent in notifications if any(route.accepts(sent) for route in routes)]
            try:
                if accepted:
                    self._channels[name].send(accepted, how)
            except MessagingException as error:
                # The channels are independent: the others get the notifications first.
                refusal = refusal or error
            except Exception as error:  # a third party's channel must not stop the others
                LOG.exception("The channel %s failed", name)
                if how.waiter is not None:
                    refusal = refusal or DeliveryFailed(f"the channel {name} raised {type(error).__name__}")
        if refusal is not None:
            raise refusal


class _Loader(yaml.SafeLoader):
    """Refuses a name that occurs twice. YAML would silently drop the first one."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002
        names = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        for name in names:
            if names.count(name) > 1:
                raise yaml.MarkedYAMLError(problem=f"{name!r} occurs twice", problem_mark=node.start_mark)
        return super().construct_mapping(node, deep)


def read_routes(path: str) -> list[Route]:
    """Read a routing file. Raises ``ConfigurationError`` when anything in it is wrong."""
    if not path:
        raise ConfigurationError(
            "routing_config is not set: the channel routing needs the path of a YAML file"
        )
    try:
        with open(path, encoding="utf-8") as file:
            groups = yaml.load(file, Loader=_Loader)  # noqa: S506 - it is a SafeLoader  # nosec B506
    except OSError as error:
        raise ConfigurationError(f"{path}: {error.strerror}") from None
    except RecursionError:
        raise ConfigurationError(f"{path}: nested too deeply") from None
    except (yaml.YAMLError, ValueError) as error:  # PyYAML raises a bare ValueError for an impossible date
        raise ConfigurationError(f"{path}: not valid YAML: {' '.join(str(error).split())}") from None
    return [
        _route(f"{path}, group {group!r}, channel {channel!r}", channel, rules)
        for group, channels in _members(path, "groups", groups)
        for channel, rules in _members(f"{path}, group {group!r}", "channels", channels)
    ]


def _members(where: str, what: str, value: Any) -> list[tuple[Any, Any]]:
    if value is None:
        return []
    if not isinstance(value, Mapping):
        raise ConfigurationError(f"{where}: {what} are needed here, not {type(value).__name__}")
    return list(value.items())


def _route(where: str, channel: Any, rules: Any) -> Route:
    known = plugins.names(NAMESPACE)
    if not isinstance(channel, str) or channel not in known or channel == "routing":
        usable = [name for name in known if name != "routing"]
        choices = did_you_mean.hint_and_choices(channel, usable)
        raise ConfigurationError(f"{where}: no such channel: {choices}")
    lists: dict[str, list[str]] = {}
    for key, patterns in _members(where, "rules", rules):
        if key not in (EVENTS, PRIORITY_RULE):
            choices = did_you_mean.hint_and_choices(key, [EVENTS, PRIORITY_RULE])
            raise ConfigurationError(f"{where}: unknown key {key!r}: {choices}")
        if not isinstance(patterns, list) or not all(isinstance(one, str) for one in patterns):
            raise ConfigurationError(f"{where}, {key}: a list of patterns (text) is needed")
        lists[key] = patterns
    return Route(channel, _events(lists.get(EVENTS)), _priorities(where, lists.get(PRIORITY_RULE)))


def _events(patterns: list[str] | None) -> "re.Pattern[str] | None":
    if patterns is None:
        return None
    # An empty list accepts nothing, as in oslo.messaging.
    return re.compile("|".join(fnmatch.translate(pattern) for pattern in patterns) or r"(?!)")


def _priorities(where: str, patterns: list[str] | None) -> frozenset[str] | None:
    if patterns is None:
        return None
    accepted: set[str] = set()
    for pattern in patterns:
        # A notifier's warning() sends at warn.
        text = "warn" if pattern.lower() == "warning" else pattern.lower()
        matching = fnmatch.filter(PRIORITIES, text)
        if not matching:
            choices = did_you_mean.hint_and_choices(text, PRIORITIES)
            raise ConfigurationError(f"{where}, {PRIORITY_RULE}: no priority matches {pattern!r}: {choices}")
        accepted.update(matching)
    return frozenset(accepted)
