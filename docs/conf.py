"""Sphinx's configuration."""

import sys
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.ext.autodoc.mock import MockFinder

from notifier_kafka.version import __version__

project = "notifier-kafka"
author = "The notifier-kafka developers"
release = __version__
extensions = [
    "sphinx.ext.autodoc",
    "myst_parser",
    "oslo_config.sphinxext",
    "stevedore.sphinxext",
    "cliff.sphinxext",
]
myst_enable_extensions = ["colon_fence", "deflist"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"notifier-kafka {release}"
html_static_path = ["static"]
html_css_files = ["page.css"]

# A signature with several parameters has a line for each: one long line is cut on a phone.
python_maximum_signature_line_length = 60
python_use_unqualified_type_names = True
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
# A default is shown as it is written, not as an object's address.
autodoc_preserve_defaults = True

# Plugins are loaded to be described; that needs none of the libraries that they stand on.
sys.meta_path.insert(0, MockFinder(["pyarrow", "pyspark"]))


def setup(app: Sphinx) -> None:
    """Draw what was measured as well, with the program that measured it."""
    app.connect("build-finished", _draw)
    app.connect("autodoc-skip-member", _skip_field)


def _skip_field(_app: Sphinx, _kind: str, _name: str, member: object, *_: object) -> bool | None:
    """Leave out the fields of a NamedTuple: they are in the signature, and have no text of their own."""
    return (member.__doc__ or "").startswith("Alias for field number") or None


def _draw(app: Sphinx, error: Exception | None) -> None:
    if error is None and app.builder.name == "html":
        sys.path.insert(0, str(Path(app.srcdir).parent))
        from benchmarks import html_report

        drawn = html_report.render_file(Path(app.srcdir, "measured.json"))
        Path(app.outdir, "measured.html").write_text(drawn, encoding="utf-8")
