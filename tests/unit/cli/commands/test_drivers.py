"""``drivers list`` shows every plugin, also those that cannot be loaded."""

import json
import os
import pathlib
import subprocess
import sys


def test_a_broken_plugin_is_one_row_among_the_others(tmp_path: pathlib.Path) -> None:
    info = tmp_path / "broken-1.5.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.5\n")
    (info / "entry_points.txt").write_text(
        "[notifier_kafka.channels]\nbroken = no_such_module_anywhere:Channel\n"
        "worse = broken_at_import:Channel\n"
    )
    (tmp_path / "broken_at_import.py").write_text("raise RuntimeError('boom\\x1b[2J')\n")
    command = [sys.executable, "-m", "notifier_kafka.cli.main", "drivers", "list", "--json"]
    listed = subprocess.run(
        command, env=os.environ | {"PYTHONPATH": str(tmp_path)}, check=True, capture_output=True
    )
    rows = {(row["namespace"], row["name"]): row for row in json.loads(listed.stdout)}

    broken = rows["notifier_kafka.channels", "broken"]
    assert broken["distribution"] == "broken 1.5"
    assert broken["loads"].startswith("no: ")
    assert "no_such_module_anywhere" in broken["loads"]
    assert "boom\\x1b" in rows["notifier_kafka.channels", "worse"]["loads"]
    for known in (
        ("notifier_kafka.drivers", "sqlite"),
        ("notifier_kafka.channels", "messagingv2"),
        ("notifier_kafka.keys", "publisher_id"),
    ):
        assert rows[known]["loads"] == "yes"
        assert rows[known]["distribution"].startswith("notifier-kafka ")
