"""Runs one case against oslo.messaging or against us: ``compat_run.py theirs|ours CASE``.

The result goes to stdout as JSON, everything else to stderr.
"""

import importlib
import json
import sys


def main() -> None:
    side, case = sys.argv[1:]
    if side == "ours":
        sys.modules["oslo_messaging"] = importlib.import_module("notifier_kafka")
    out, sys.stdout = sys.stdout, sys.stderr
    result = importlib.import_module(case).run()
    json.dump(result, out)


main()
