"""Runs one case against oslo.messaging or against us: ``compat_run.py theirs|ours CASE [PACKAGES]``.

``PACKAGES`` is where our package is when this is the environment of oslo.messaging. The result
goes to stdout as JSON, everything else to stderr.
"""

import importlib
import json
import site
import sys


def main() -> None:
    side, case, *packages = sys.argv[1:]
    for directory in packages:
        site.addsitedir(directory)
    if side == "ours":
        sys.modules["oslo_messaging"] = importlib.import_module("notifier_kafka")
    out, sys.stdout = sys.stdout, sys.stderr
    result = importlib.import_module(f"tests.compat.{case}").run()
    json.dump(result, out)


main()
