"""Docstrings as numpydoc reads them, and which members of a class have a place on its page."""

import re


def escape_fitted_names(app, what, name, obj, options, lines):
    """``vectors_`` in the type of an attribute is a name, not a link of reStructuredText."""
    for i, line in enumerate(lines):
        if re.match(r"\w+ : .*shape \(", line):
            lines[i] = re.sub(r"_(?=[,)])", r"\\_", line)


def skip_routing(app, what, name, obj, skip, options):
    """Setters of scikit-learn's metadata routing: five for each estimator, and the same everywhere."""
    return True if re.fullmatch(r"set_\w+_request|get_metadata_routing", name) else None


def mend_back_links(app, page, template, context, doctree):
    """viewcode takes all objects of a file to be documented under one module: drop anchors that are not there."""
    if not page.startswith("_modules/") or "body" not in context:
        return
    known = app.env.domains["py"].objects
    link = r'(class="viewcode-back" href="[^"#]*)#([^"]*)"'
    context["body"] = re.sub(link, lambda m: m[0] if m[2] in known else m[1] + '"', context["body"])


def setup(app):
    app.connect("html-page-context", mend_back_links)
    app.connect("autodoc-process-docstring", escape_fitted_names, priority=400)  # before numpydoc reads it
    app.connect("autodoc-skip-member", skip_routing)
    return {"parallel_read_safe": True}
