"""Notifications as services send them, made up but the same each time, in every form."""

import datetime
import random
from collections.abc import Sequence
from typing import Any

from notifier_kafka.contract.driver import Record
from notifier_kafka.notification import Notification
from notifier_kafka.wire import codec

BEGIN = datetime.datetime(2026, 11, 18, 7, 58)
FORMS: tuple[codec.Form, ...] = ("envelope", "flat", "cloudevents-binary", "cloudevents-structured")
MALFORMED: list[bytes | None] = [None, b"", b"{", b"[]", b'{"priority": "LOUD"}', b"\xff"]

# What a payload's size may be: most count, the text, the list and the absent do not.
SIZES: list[Any] = [1, 2, 3.5, 0.1, 0, -7, 1e3, 10**12, "5", None, [1], {"n": 1}, True, 2**70]


def notifications(count: int, seed: int = 1) -> list[Notification]:
    chance = random.Random(seed)
    made = []
    for number in range(count):
        service = chance.choice(["compute", "volume", "image"])
        operation = chance.choice(["instance.create", "instance.reboot", "resize_x%"])
        phase = chance.choice([".start", ".end", ".start", ".end", ".error", ""])
        payload: Any = {
            "id": f"i-{chance.randrange(max(1, count // 8))}",
            "tenant": chance.choice(["red", "green", None, 5, "it's"]),
            "size": chance.choice([*SIZES, round(chance.expovariate(0.01), 4)]),
            "disks": [{"gb it": chance.randrange(100)}],
            "user": f"u{chance.randrange(500)}",
        }
        when = BEGIN + datetime.timedelta(
            seconds=chance.randrange(7200), microseconds=chance.randrange(10**6)
        )
        made.append(
            Notification(
                f"m-{seed}-{number}",
                chance.choice([None, f"{service}.host{chance.randrange(4)}", service]),
                f"{service}.{operation}{phase}",
                chance.choice(["INFO", "INFO", "WARN", "ERROR", "CRITICAL"]),
                chance.choice([payload, payload, payload, payload, None, [1], "text"]),
                chance.choice([str(when)] * 9 + ["2031-01-01 00:00:00"]),
                chance.choice([{}, {"request_id": f"r{number}"}]),
            )
        )
    return made


def records(
    sent: list[Notification], topic: str = "t.info", seed: int = 2, forms: Sequence[codec.Form] = FORMS
) -> list[Record]:
    """Encode each in one of the forms; some in between are malformed."""
    chance = random.Random(seed)
    made = []
    for notification in sent:
        value, headers = codec.encode(notification, chance.choice(forms))
        made.append(Record(topic, value, chance.choice([None, b"k"]), headers))
        if chance.random() < 0.02:
            made.append(Record(topic, chance.choice(MALFORMED)))
    return made
