"""A listener in the hands of oslo.service: a launcher runs it in a process of its own until SIGTERM."""

import os
import pathlib
import signal
import tempfile
import threading
from typing import Any

from oslo_service import backend  # type: ignore[import-not-found,unused-ignore]

# Before anything has it choose for itself.
backend.init_backend(backend.BackendType.THREADING)

from oslo_service import service  # type: ignore[import-not-found,unused-ignore] # noqa: E402

from tests.compat import compat_kit as kit  # noqa: E402

om = kit.oslo_messaging


class Endpoint:
    def __init__(self, heard: pathlib.Path) -> None:
        self.heard = heard

    def info(self, _ctxt: Any, publisher_id: str, event_type: str, payload: Any, _metadata: Any) -> None:
        self.heard.write_text(f"{publisher_id} {event_type} {payload} here: {os.getpid() == PARENT}")


PARENT = os.getpid()


def run() -> Any:
    with tempfile.TemporaryDirectory() as directory:
        heard = pathlib.Path(directory, "heard")
        conf = kit.make_conf(driver=["messagingv2"])
        url = f"sqlite:///{directory}/log.db" if kit.OURS else kit.URL
        transport = om.get_notification_transport(conf, url)
        om.Notifier(transport, "host1").info({}, "event", 5)
        listener = om.get_notification_listener(
            transport, [om.Target(topic="notifications")], [Endpoint(heard)]
        )
        launcher = service.launch(conf, listener)
        threading.Thread(target=end_once_there_is, args=(heard,)).start()
        code = launcher.wait()
        transport.cleanup()
        return {"heard": heard.read_text(), "code": code}


def end_once_there_is(heard: pathlib.Path) -> None:
    kit.wait_until(lambda: heard.exists() and bool(heard.read_text()))
    os.kill(PARENT, signal.SIGTERM)
