"""``python -m faults audit``: known weaknesses of what is installed, and how much could be looked up.

pip-audit ends with 0 and "no known vulnerabilities" also when no index knew a single package, as
behind a mirror that has files only. Here that ends with 2: nothing was audited. 1 is a weakness.
"""

import json
import subprocess
import sys
from collections.abc import Iterable, Mapping
from typing import Any

SERVICES = ("pypi", "osv")
WEAK, NOT_AUDITED = 1, 2


def main() -> int:
    found: dict[str, Any] = {}
    for service in SERVICES:
        found, trouble = looked_up(service)
        if any("vulns" in each for each in found.get("dependencies", ())):
            return judged(service, found["dependencies"])
        print(f"{service} tells nothing: {trouble}", file=sys.stderr)
    print("NOT AUDITED: no index is in reach that knows of weaknesses", file=sys.stderr)
    return NOT_AUDITED


def looked_up(service: str) -> tuple[dict[str, Any], str]:
    """Ask a service; return what it said of each package, or else why it did not."""
    command = [sys.executable, "-m", "pip_audit", "--local", "--progress-spinner", "off"]
    command += ["--format", "json", "--vulnerability-service", service]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        return json.loads(ran.stdout), "it knows no package that is installed"
    except ValueError:
        return {}, ran.stderr.strip().rpartition("\n")[2][:200]


def judged(service: str, packages: Iterable[Mapping[str, Any]]) -> int:
    """Print what is weak and what was not looked up; return the exit code."""
    weak = skipped = known = 0
    for each in packages:
        known += "vulns" in each
        if "skip_reason" in each:
            skipped += 1
            print(f"not audited: {each['skip_reason']}")
        for hole in each.get("vulns", ()):
            weak += 1
            mended = ", ".join(hole.get("fix_versions", ())) or "none yet"
            print(f"{each['name']} {each['version']}: {hole['id']}; mended in {mended}")
    print(f"{service}: {known} packages audited, {skipped} not, {weak} known weaknesses")
    return WEAK if weak else 0
