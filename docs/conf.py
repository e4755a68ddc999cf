"""Sphinx configuration."""

import re
from importlib.metadata import version as installed_version

project = "slimsvm"
author = "The slimsvm developers"
copyright = "2026, The slimsvm developers"
version = release = installed_version("slimsvm")

extensions = ["myst_parser", "numpydoc", "sphinx.ext.autodoc", "sphinx.ext.mathjax"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False

html_theme = "furo"
html_title = f"slimsvm {release}"


def escape_fitted_names(app, what, name, obj, options, lines):
    """``vectors_`` in the type of an attribute is a name, not a link of reStructuredText."""
    for i, line in enumerate(lines):
        if re.match(r"\w+ : .*shape \(", line):
            lines[i] = re.sub(r"_(?=[,)])", r"\\_", line)


def setup(app):
    app.connect("autodoc-process-docstring", escape_fitted_names, priority=400)  # before numpydoc reads it
