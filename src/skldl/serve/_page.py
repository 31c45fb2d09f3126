"""The page at ``/``: one file of HTML with its style and script inside, under a strict content security policy."""

import base64
import hashlib
import re
from importlib import resources


def page_and_policy() -> tuple[bytes, str]:
    """Read the page, and make the Content-Security-Policy that allows its style and script, by their hashes, alone."""
    text = resources.files("skldl.serve").joinpath("page.html").read_text(encoding="utf-8")
    script, style = (_hashes(text, element) for element in ("script", "style"))
    policy = (
        f"default-src 'none'; script-src {script}; style-src {style}; connect-src 'self' blob:; img-src data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return text.encode(), policy


def _hashes(page: str, element: str) -> str:
    contents = re.findall(rf"<{element}>(.*?)</{element}>", page, flags=re.S)
    digests = (base64.b64encode(hashlib.sha256(content.encode()).digest()).decode() for content in contents)
    return " ".join(f"'sha256-{digest}'" for digest in digests)
