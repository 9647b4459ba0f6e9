"""A listener's life: the arguments that a wrapper of oslo.messaging's takes, and what a wait raises."""

from typing import Any

from tests.compat import compat_kit as kit

om = kit.oslo_messaging


class Endpoint:
    def info(self, *_: Any) -> None:
        pass


def run() -> Any:
    transport = kit.make_transport(kit.make_conf())
    listener = om.get_notification_listener(transport, [om.Target(topic="a")], [Endpoint()])
    both = {"timeout": 60, "log_after": 0}
    results: dict[str, Any] = {"caught": []}
    for turn in ("first", "again"):
        results[f"start {turn}"] = kit.outcome(lambda: listener.start(**both))
        for error in (om.server.TaskTimeout, om.MessagingServerError):
            try:
                listener.wait(timeout=0.01)
            except error as caught:
                results["caught"].append([type(caught).__name__, error.__name__])
        results[f"stop {turn}"] = kit.outcome(lambda: listener.stop(**both))
        results[f"wait {turn}"] = kit.outcome(lambda: listener.wait(**both))
    results["pool"] = kit.outcome(lambda: listener.start(4, log_after=0))
    listener.stop(timeout=60)
    listener.wait(log_after=60)
    transport.cleanup()
    return results
