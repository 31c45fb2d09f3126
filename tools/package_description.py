"""The text that a package index shows: README.md without pictures and links that work in the repository alone.

hatchling calls this file whenever a distribution is built (``[tool.hatch.metadata.hooks.custom]`` in pyproject.toml). A
package index shows the text without the files beside it, so that a relative link leads nowhere and a relative picture
is broken. Links become their text, which names the file in most cases; pictures are left out. Once the owner of the
repository is filled in at ``address`` in that section of pyproject.toml, both become absolute instead.
"""

import re
from pathlib import Path
from typing import Any

try:
    from hatchling.metadata.plugin.interface import MetadataHookInterface
except ModuleNotFoundError:  # the tests read this file without hatchling
    MetadataHookInterface = object

_PICTURE = re.compile(r"!\[([^\]]*)\]\((?!https?:)([^)\s]+)\)\n*")
_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\((?!https?:|mailto:|#)([^)\s]+)\)")


def package_description(readme: str, address: str = "") -> str:
    """Adapt the text of README.md.

    Parameters
    ----------
    readme : str
        Markdown with links relative to the root of the repository.
    address : str, default=""
        Address of that root, with a slash at its end; empty if there is none. An address with the placeholder OWNER
        counts as none. Pictures are loaded from ``/raw/`` in place of ``/blob/``, which is a page around a file.

    Returns
    -------
    str
        Markdown without relative links.
    """
    if address and "/OWNER/" not in address:
        files = address.replace("/blob/", "/raw/")
        pictured = _PICTURE.sub(lambda found: found[0].replace(f"({found[2]}", f"({files}{found[2]}"), readme)
        return _LINK.sub(rf"[\1]({address}\2)", pictured)
    return _LINK.sub(r"\1", _PICTURE.sub("", readme))


class PackageDescription(MetadataHookInterface):
    """The hook that hatchling calls."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the description of the distribution."""
        readme = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        text = package_description(readme, self.config.get("address", ""))
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
