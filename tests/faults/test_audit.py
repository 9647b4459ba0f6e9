"""What is said of an audit: what is weak, and what could not be looked up at all."""

import pathlib
import subprocess
import sys

import pytest

from faults import audit
from faults.processes import ENVIRONMENT

KNOWN = {"name": "a", "version": "1", "vulns": []}
WEAK = {"name": "b", "version": "2", "vulns": [{"id": "CVE-1", "fix_versions": ["3"]}]}
SKIPPED = {"name": "c", "skip_reason": "c is not known"}


def test_what_is_weak_is_named_and_what_was_left_out_counted(capsys: pytest.CaptureFixture[str]) -> None:
    assert audit.judged("pypi", [KNOWN, SKIPPED]) == 0
    assert audit.judged("pypi", [KNOWN, WEAK]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "not audited: c is not known",
        "pypi: 1 packages audited, 1 not, 0 known weaknesses",
        "b 2: CVE-1; mended in 3",
        "pypi: 2 packages audited, 0 not, 1 known weaknesses",
    ]


def test_nothing_looked_up_is_no_good_news(tmp_path: pathlib.Path) -> None:
    # As pip-audit itself says it of an index that knows no package.
    said = '{"dependencies": [{"name": "c", "skip_reason": "c is not known"}]}'
    (tmp_path / "pip_audit.py").write_text(f"print({said!r})\n")
    path = f"{tmp_path}:{ENVIRONMENT['PYTHONPATH']}"
    command = [sys.executable, "-m", "faults", "audit"]
    done = subprocess.run(
        command, env=ENVIRONMENT | {"PYTHONPATH": path}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.endswith("NOT AUDITED: no index is in reach that knows of weaknesses\n")
