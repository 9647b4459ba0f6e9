import itertools
import random
import re
from typing import Any

from tests.compat import compat_kit as kit

RULES: list[dict[str, Any]] = [
    {},
    {"event_type": "compute"},
    {"event_type": "^.*end$"},
    {"event_type": ""},
    {"publisher_id": "host", "event_type": "compute"},
    {"context": {"tenant": "^5f"}},
    {"context": {"tenant": "", "roles": "private"}},
    {"metadata": {"timestamp": "2026"}},
    {"payload": {"state": "^active$"}},
    {"payload": {"size": "1"}},
    {"payload": {}, "context": {}},
]
VALUES: list[Any] = [
    None,
    "",
    "compute.create.end",
    "host1",
    "a compute",
    5,
    1.5,
    True,
    ["compute"],
    {"a": 1},
]
MEMBERS: list[Any] = [
    *({}, {"state": "active"}, {"state": "inactive", "size": 1}, {"state": None}, {"size": "10"}),
    *({"tenant": "5f64", "roles": "private"}, {"tenant": 5}, {"timestamp": "2026-01-01"}),
    *(None, 5, "state", ["state"], True),
]
BAD = ["(", "*", "[a", "(?P<x>a)(?P<x>b)", "\\"]


def decide(rules: dict[str, Any], fields: tuple[Any, ...]) -> Any:
    return kit.outcome(lambda: kit.oslo_messaging.NotificationFilter(**rules).match(*fields))


def run() -> Any:
    chance = random.Random(7)
    patterns = ["", "^a", "a.*b$", "[ab]+$", "(a|b)c?", "."]
    texts = ["", "a", "ab", "acb", "b", "ccc", "A", "a\nb", "é"]
    decisions = []
    for rules in RULES:
        for value, members in itertools.product(VALUES, MEMBERS):
            decisions.append(
                [[rules, value, members], decide(rules, (members, value, value, members, members))]
            )
    for _ in range(2000):
        rules = {}
        for field in ("publisher_id", "event_type"):
            if chance.random() < 0.5:
                rules[field] = chance.choice(patterns)
        for field in ("context", "metadata", "payload"):
            if chance.random() < 0.5:
                rules[field] = {name: chance.choice(patterns) for name in chance.sample("xyz", 2)}

        def members() -> dict[str, Any]:
            return {name: chance.choice([*texts, None, 5]) for name in chance.sample("xyz", 2)}

        fields = (members(), chance.choice(texts), chance.choice([*texts, None]), members(), members())
        decisions.append([[rules, *fields], decide(rules, fields)])
    compiled = kit.oslo_messaging.NotificationFilter(event_type=re.compile("A", re.IGNORECASE))
    return {
        "decisions": decisions,
        "compiled": compiled.match({}, None, "a", {}, {}),
        "bad": [decide_bad(bad) for bad in BAD],
    }


def decide_bad(pattern: str) -> str:
    try:
        kit.oslo_messaging.NotificationFilter(event_type=pattern)
    except Exception as error:  # noqa: BLE001 - the case compares it
        cause = error.__cause__ or error
        return f"refused: {cause}"
    return "accepted"
