"""When a client library is loaded: with the notifier, so that no call of it has to wait for that."""

import subprocess
import sys

import pytest

PROGRAM = """
import sys
from oslo_config import cfg
from notifier_kafka import notifier, transport
conf = cfg.ConfigOpts()
conf([], project="test", default_config_files=[], default_config_dirs=[])
if len(sys.argv) > 3:
    sys.modules[sys.argv[2]] = None
bus = transport.get_notification_transport(conf, f"kafka://127.0.0.1:1/?client={sys.argv[1]}")
before = sys.argv[2] in sys.modules
notifier.Notifier(bus, "host1", driver="messagingv2")
print(before, sys.modules.get(sys.argv[2]) is not None)
"""
CLIENTS = [("confluent-kafka", "confluent_kafka"), ("kafka-python", "kafka")]


@pytest.mark.parametrize(("client", "module"), CLIENTS)
def test_a_notifier_loads_it_before_its_first_call(client: str, module: str) -> None:
    assert said(client, module) == "False True\n"


@pytest.mark.parametrize(("client", "module"), CLIENTS)
def test_one_that_is_not_there_is_the_first_call_s_error(client: str, module: str) -> None:
    assert said(client, module, "missing") == "True False\n"


def said(*arguments: str) -> str:
    return subprocess.check_output([sys.executable, "-c", PROGRAM, *arguments], text=True)
