"""Leaving a group at any moment of joining it."""

import subprocess
import sys
from typing import Any

from tests.shared.checkout import ROOT
from tests.shared.kafka.kafka_rig import PATIENCE, Connect

CHILD = ROOT / "tests/shared/kafka/leaving_child.py"
COUNT = 64  # librdkafka hung once in 150 closes, on a busy machine: a run alone proves little


def test_members_that_leave_while_they_join_come_to_an_end(
    kafka_cluster: Any, connect: Connect, client: str, topic: str
) -> None:
    connect().admin().create_topic(topic, 2)
    command = [sys.executable, str(CHILD), f"{kafka_cluster.url}/?client={client}", topic, str(COUNT)]
    # A process of its own: librdkafka, when it hangs, stops all threads of the one that it is in.
    subprocess.run(command, check=True, timeout=2 * PATIENCE)
    admin = connect().admin()
    ours = [name for name in admin.list_groups() if name.startswith(topic)]
    assert [name for name in ours if admin.describe_group(name).members] == []
