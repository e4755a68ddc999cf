"""Names in code font are links: `SlimSVC` in a page leads to its page of the API."""

import outside
from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.transforms.post_transforms import SphinxPostTransform

import slimsvm

OWN = {name: f"slimsvm.{name}" for name in slimsvm.__all__ if not name.startswith("_")}


def target(text):
    """The full name of what a page calls by a short one: `SlimSVC(n_vectors=8)`, `slacks.TopSum`, `SVC`."""
    word = text.partition("(")[0]
    full = OWN.get(word) or outside.SHORT.get(word) or word
    if full.partition(".")[0] in OWN:
        full = f"slimsvm.{full}"
    return full if full.startswith("slimsvm.") or full in outside.NAMES else None


class Names(SphinxPostTransform):
    """Before references are resolved; what has no page stays plain. Headings, links and the API are left alone."""

    default_priority = 5

    def run(self, **kwargs):
        page = self.env.docname
        if page.startswith(("api", "changelog")):
            return
        for literal in list(self.document.findall(nodes.literal)):
            full = target(literal.astext())
            if full is None or self._inside(literal):
                continue
            reference = pending_xref("", refdomain="py", reftype="obj", reftarget=full, refdoc=page, refwarn=False)
            literal.replace_self(reference)
            reference += literal

    @staticmethod
    def _inside(node):
        while node := node.parent:
            if isinstance(node, nodes.title | nodes.reference | pending_xref):
                return True
        return False


def setup(app):
    app.add_post_transform(Names)
    return {"parallel_read_safe": True}
