"""Sphinx configuration. Nothing is fetched: neither by the build, nor by a page that is read."""

import sys
from importlib.metadata import version as installed_version
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

import outside  # noqa: E402

project = "slimsvm"
author = "The slimsvm developers"
copyright = "2026, The slimsvm developers"
version = release = installed_version("slimsvm")

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "docstrings",
    "names",
]
exclude_patterns = ["_ext", "_templates", "auto_examples/GALLERY_HEADER.rst"]
templates_path = ["_templates"]
smartquotes_action = "De"  # dashes only: quotes in types of parameters are code
default_role = "py:obj"  # `SVC` in a docstring is a link where there is a page for it

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 4

# One page for each class and function; api.rst lists them.
autosummary_generate = True
autosummary_filename_map = {"slimsvm.frontier": "slimsvm.frontier_function"}  # some systems take it for Frontier
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_xref_param_type = True
numpydoc_xref_ignore = "all"
numpydoc_xref_aliases = outside.ALIASES
viewcode_line_numbers = True

# Names of other projects, from files written here: a build needs no network.
intersphinx_mapping = outside.mapping(HERE.parent / "build" / "inventories")

# Formulas are set by MathJax as SVG: one script, which is part of the site.
mathjax_path = "tex-svg.js"
MATHJAX = Path(find_spec("sphinx-mathjax-offline").submodule_search_locations[0]) / "static" / "mathjax" / mathjax_path

# A page for each examples/plot_*.py, run when it has changed.
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"[\\/]plot_",
    "ignore_pattern": r"^(?!plot_)",
    "nested_sections": False,
    "reset_modules": ("matplotlib", "gallery.style"),
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "within_subsection_order": "FileNameSortKey",
    "doc_module": ("slimsvm",),
    "backreferences_dir": "auto_examples/backreferences",
}

html_theme = "furo"
pygments_dark_style = "github-dark"
html_title = f"slimsvm {release}"
html_static_path = ["_static", str(MATHJAX)]
html_css_files = ["slimsvm.css"]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#1d5fa8", "color-brand-content": "#1d5fa8"},
    "dark_css_variables": {"color-brand-primary": "#7db4f0", "color-brand-content": "#7db4f0"},
    "navigation_with_keys": True,
}

# What is copied can be run: neither prompts nor what a command prints.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_selector = "div.highlight:not(.highlight-text div) > pre"
