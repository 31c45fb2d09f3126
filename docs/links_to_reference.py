"""A Sphinx extension: names of the package in Markdown pages, such as `SABFGS`, become links to the reference.

The pages of the repository stay plain Markdown that reads well everywhere; on the site the same code words lead to
the page of the class or function.
"""

import re
from typing import Any

import reference
from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.nodes import make_refnode

from skldl.metrics import MEASURES

CALL = re.compile(r"(?:skldl\.)?([\w.]+)(?:\(.*\))?", flags=re.DOTALL)


class LinksToReference(SphinxPostTransform):
    """Turn inline code that is a public name, alone or as a call, into a link."""

    default_priority = 400

    def run(self, **kwargs: Any) -> None:
        if self.env.docname.startswith((f"{reference.FOLDER}/", "gallery/")):
            return
        homes = names_of_the_reference()
        objects = self.env.get_domain("py").objects
        for literal in list(self.document.findall(nodes.literal)):
            inside = literal.parent
            while inside is not None and not isinstance(inside, (nodes.reference, nodes.title)):
                inside = inside.parent
            match = CALL.fullmatch(literal.astext())
            home = homes.get(match[1]) if match and inside is None and _is_meant(literal.astext(), match[1]) else None
            if home not in objects:
                continue
            target = objects[home]
            link = make_refnode(
                self.app.builder, self.env.docname, target.docname, target.node_id, literal.deepcopy(), home
            )
            literal.replace_self(link)


def _is_meant(text: str, name: str) -> bool:
    """Whether a word is meant as a name of code; words such as `search` or `data` may not be."""
    return text.endswith(")") or "." in text or "_" in name or name != name.lower() or name in MEASURES


def names_of_the_reference() -> dict[str, str]:
    """The full name for every name, short or with its module; ambiguous short names are left out."""
    full: dict[str, str] = {}
    short: dict[str, set[str]] = {}
    for entry in reference.entries():
        full[entry.full_name.removeprefix("skldl.")] = entry.home
        short.setdefault(entry.name, set()).add(entry.home)
    for module in reference.MODULES:
        if module != "skldl":
            full[module.removeprefix("skldl.")] = module
    return {name: min(homes) for name, homes in short.items() if len(homes) == 1} | full


def setup(app: Any) -> dict[str, bool]:
    app.add_post_transform(LinksToReference)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
