"""``python -m faults audit``: known vulnerabilities of the installed packages.

pip-audit ends with 0 and "no known vulnerabilities" also when no index knew any package, as behind
a mirror that has files only. Here that ends with 2: nothing was audited. 1 means a vulnerability.
"""

import json
import subprocess
import sys
from collections.abc import Iterable, Mapping
from typing import Any

SERVICES = ("pypi", "osv")
VULNERABLE, NOT_AUDITED = 1, 2


def main() -> int:
    found: dict[str, Any] = {}
    for service in SERVICES:
        found, trouble = query(service)
        if any("vulns" in each for each in found.get("dependencies", ())):
            return print_report(service, found["dependencies"])
        print(f"{service} gave no answer: {trouble}", file=sys.stderr)
    print("NOT AUDITED: no index of vulnerabilities can be reached", file=sys.stderr)
    return NOT_AUDITED


def query(service: str) -> tuple[dict[str, Any], str]:
    """Ask a service; return its answer, or else the reason why there is none."""
    command = [sys.executable, "-m", "pip_audit", "--local", "--progress-spinner", "off"]
    command += ["--format", "json", "--vulnerability-service", service]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        return json.loads(ran.stdout), "it knows none of the installed packages"
    except ValueError:
        return {}, ran.stderr.strip().rpartition("\n")[2][:200]


def print_report(service: str, packages: Iterable[Mapping[str, Any]]) -> int:
    """Print what is vulnerable and what was not audited; return the exit code."""
    vulnerable = skipped = known = 0
    for each in packages:
        known += "vulns" in each
        if "skip_reason" in each:
            skipped += 1
            print(f"not audited: {each['skip_reason']}")
        for vulnerability in each.get("vulns", ()):
            vulnerable += 1
            fixed = ", ".join(vulnerability.get("fix_versions", ())) or "none yet"
            print(f"{each['name']} {each['version']}: {vulnerability['id']}; fixed in {fixed}")
    print(f"{service}: {known} packages audited, {skipped} not, {vulnerable} known vulnerabilities")
    return VULNERABLE if vulnerable else 0
