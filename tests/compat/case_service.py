from typing import Any

from tests.compat import compat_kit as kit
from tests.compat import service


def run() -> Any:
    conf = kit.make_conf()
    if kit.OURS:
        conf.set_override("requeue_delay", 0.0, group="listener")
    running = service.Service(conf, kit.URL)
    # The fake transport keeps for a pool what came before it began to listen only if
    # something was sent at all, so both begin to listen first.
    running.server.start()
    running.work()
    complete = kit.wait_until(lambda: len(running.instances.heard) >= 4 and len(running.errors.heard) >= 1)
    running.server.stop()
    running.server.wait()
    running.transport.cleanup()
    return {
        "complete": complete,
        "instances": sorted(running.instances.heard, key=str),
        "errors": running.errors.heard,
        "refused": sorted(running.instances.refused),
        "control_exchange": conf.control_exchange,
    }
