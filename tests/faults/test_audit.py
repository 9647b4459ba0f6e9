"""The report of an audit: what is vulnerable, and what was not audited."""

import pathlib
import subprocess
import sys

import pytest

from faults import audit
from faults.processes import ENVIRONMENT

KNOWN = {"name": "a", "version": "1", "vulns": []}
VULNERABLE = {"name": "b", "version": "2", "vulns": [{"id": "CVE-1", "fix_versions": ["3"]}]}
SKIPPED = {"name": "c", "skip_reason": "c is not known"}


def test_vulnerable_packages_are_named_and_skipped_ones_counted(capsys: pytest.CaptureFixture[str]) -> None:
    assert audit.print_report("pypi", [KNOWN, SKIPPED]) == 0
    assert audit.print_report("pypi", [KNOWN, VULNERABLE]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "not audited: c is not known",
        "pypi: 1 packages audited, 1 not, 0 known vulnerabilities",
        "b 2: CVE-1; fixed in 3",
        "pypi: 2 packages audited, 0 not, 1 known vulnerabilities",
    ]


def test_an_audit_without_an_index_fails(tmp_path: pathlib.Path) -> None:
    # The output of pip-audit with an index that knows no package.
    said = '{"dependencies": [{"name": "c", "skip_reason": "c is not known"}]}'
    (tmp_path / "pip_audit.py").write_text(f"print({said!r})\n")
    path = f"{tmp_path}:{ENVIRONMENT['PYTHONPATH']}"
    command = [sys.executable, "-m", "faults", "audit"]
    done = subprocess.run(
        command, env=ENVIRONMENT | {"PYTHONPATH": path}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.endswith("NOT AUDITED: no index of vulnerabilities can be reached\n")
