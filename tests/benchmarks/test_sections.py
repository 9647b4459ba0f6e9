"""The names of the sections, as the documentation gives them."""

import re

from benchmarks.__main__ import SECTIONS
from tests.shared.checkout import ROOT


def test_the_documentation_names_sections_that_exist() -> None:
    pages = "\n".join(page.read_text("utf-8") for page in (ROOT / "docs").glob("*.md"))
    named = set(" ".join(re.findall(r"python -m benchmarks((?: [a-z][a-z-]*)*)", pages)).split())
    assert named <= {"all", *SECTIONS}
    assert {"call-latency", "sqlite-listen"} <= named
