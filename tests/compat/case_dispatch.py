"""Which methods of which endpoints get what, and what their answers do."""

from collections.abc import Callable
from typing import Any

from tests.compat import compat_kit as kit

om = kit.oslo_messaging
REQUEUE = om.NotificationResult.REQUEUE


class Recorder:
    """An endpoint with some priorities; ``answer`` says what becomes of a call."""

    def __init__(self, name: str, priorities: str, answer: Callable[..., Any] | None = None) -> None:
        self.calls: list[Any] = []
        self.name = name
        self.answer = answer or (lambda *args: None)
        for priority in priorities.split():
            setattr(self, priority, self._method(priority))

    def _method(self, priority: str) -> Callable[..., Any]:
        def single(*args: Any) -> Any:
            if len(args) == 1:  # a batch
                self.calls.append([priority, [strip(message) for message in args[0]]])
                return self.answer([message["event_type"] for message in args[0]])
            self.calls.append([priority, *args[:4], sorted(args[4])])
            return self.answer(args[2])

        return single


def strip(message: dict[str, Any]) -> dict[str, Any]:
    return dict(message) | {"metadata": sorted(message["metadata"])}


def once(answer: Any) -> Callable[[Any], Any]:
    """Answer the first time for each event, then None; an exception is raised."""
    seen: set[str] = set()

    def decide(event: Any) -> Any:
        if str(event) in seen:
            return None
        seen.add(str(event))
        if isinstance(answer, Exception):
            raise answer
        return answer

    return decide


def listen(endpoints: list[Recorder], sends: list[tuple[str, str]], calls: int, **batch: Any) -> Any:
    conf = kit.make_conf()
    if kit.OURS:
        conf.set_override("requeue_delay", 0.0, group="listener")
    transport = kit.make_transport(conf)
    notifier = om.Notifier(transport, "host1", driver="messaging", topics=["topic"])
    for priority, event in sends:
        getattr(notifier, priority)({}, event, {"of": event})
    if kit.OURS:
        notifier.flush(60)
    make = om.get_batch_notification_listener if batch else om.get_notification_listener
    server = make(
        transport, [om.Target(topic="topic")], endpoints, executor="threading", allow_requeue=True, **batch
    )
    server.start()
    complete = kit.wait_until(lambda: sum(len(one.calls) for one in endpoints) >= calls)
    server.stop()
    server.wait()
    transport.cleanup()
    # Priorities are different topics, without an order between them.
    return {"complete": complete} | {one.name: sorted(one.calls, key=str) for one in endpoints}


def run() -> Any:
    every = "audit debug info warn error critical sample"
    all_sends = [(priority, f"event.{priority}") for priority in every.split()]
    results: dict[str, Any] = {}

    results["by method"] = listen(
        [Recorder("all", every), Recorder("some", "info error"), Recorder("none", "")],
        all_sends,
        9,
    )

    filtered = Recorder("filtered", "info")
    filtered.filter_rule = om.NotificationFilter(event_type="^a")  # type: ignore[attr-defined]
    by_payload = Recorder("by payload", "info")
    by_payload.filter_rule = om.NotificationFilter(payload={"of": "^b"})  # type: ignore[attr-defined]
    results["by filter"] = listen(
        [filtered, by_payload, Recorder("open", "info")], [("info", "a"), ("info", "b")], 4
    )

    for name, answer in (("requeue", REQUEUE), ("raise", ValueError("endpoint")), ("odd", "odd")):
        # A refusal ends the round: the endpoint behind gets the notification only the next time.
        first = Recorder("first", "info", once(answer))
        results[f"single, {name}"] = listen(
            [Recorder("before", "info"), first, Recorder("behind", "info")],
            [("info", "a"), ("info", "b")],
            6 if name == "odd" else 10,
        )

    size = {"batch_size": 3, "batch_timeout": 1}
    results["batch"] = listen(
        [Recorder("all", "info"), Recorder("none", "error")], [("info", f"e{n}") for n in range(3)], 1, **size
    )
    screened = Recorder("screened", "info")
    screened.filter_rule = om.NotificationFilter(event_type="^e[01]")  # type: ignore[attr-defined]
    results["batch, by filter"] = listen([screened], [("info", f"e{n}") for n in range(3)], 1, **size)
    for name, answer in (("requeue", REQUEUE), ("raise", ValueError("endpoint"))):
        results[f"batch, {name}"] = listen(
            [Recorder("before", "info"), Recorder("first", "info", once(answer)), Recorder("behind", "info")],
            [("info", f"e{n}") for n in range(3)],
            5,
            **size,
        )
    return results
