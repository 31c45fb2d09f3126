"""Fill in who publishes: the owner of the repository and an address for confidential reports.

    python tools/set_owner.py OWNER CONTACT

The one place where both stand is pyproject.toml (``[project.urls]`` and ``maintainers``). This command writes them
there and into the files that repeat them, and puts a line of badges below the title of README.md. It can be repeated
with other names. Until it was run, ``make release-version`` reports the placeholders.
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FILES = (
    "pyproject.toml",
    "codemeta.json",
    "CODE_OF_CONDUCT.md",
    "SUPPORT.md",
    "README.md",
    "recipe/recipe.yaml",
    ".github/ISSUE_TEMPLATE/config.yml",
)
"""Files that name the owner or the contact."""

PLACEHOLDER = "OWNER"
PLACEHOLDER_CONTACT = "contact@example.org"


def owner_and_contact(root: Path = ROOT) -> tuple[str, str]:
    """Owner and contact as pyproject.toml has them.

    Parameters
    ----------
    root : Path
        Root of the repository.

    Returns
    -------
    tuple of str
        The first part of the path in the address of the repository, and the e-mail address of the maintainers.
    """
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return project["urls"]["Repository"].split("/")[3], project["maintainers"][0]["email"]


def badges(owner: str) -> str:
    """Write the line of badges: tests, version on the package index, Python versions, documentation."""
    repository = f"https://github.com/{owner}/scikit-ldl"
    shields = "https://img.shields.io"
    return " ".join(
        f"[![{title}]({picture})]({target})"
        for title, picture, target in (
            ("ci", f"{repository}/actions/workflows/ci.yml/badge.svg", f"{repository}/actions/workflows/ci.yml"),
            ("version", f"{shields}/pypi/v/scikit-ldl", f"{repository}/releases"),
            ("Python", f"{shields}/pypi/pyversions/scikit-ldl", f"{repository}/releases"),
            ("documentation", f"{shields}/badge/documentation-site-blue", f"https://{owner}.github.io/scikit-ldl/"),
        )
    )


def fill_in(owner: str, contact: str, root: Path = ROOT) -> list[str]:
    """Replace owner and contact in all files, and write the badges.

    Parameters
    ----------
    owner : str
        User or organisation on GitHub.
    contact : str
        E-mail address.
    root : Path
        Root of the repository.

    Returns
    -------
    list of str
        The files that changed.
    """
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9-]{0,38}", owner) or not re.fullmatch(
        r"[^@\s<>\"]+@[^@\s<>\"]+", contact
    ):
        raise ValueError(f"{owner!r} is not the name of an owner, or {contact!r} not an e-mail address.")
    old_owner, old_contact = owner_and_contact(root)
    changed = []
    for name in FILES:
        path = root / name
        before = text = path.read_text(encoding="utf-8")
        if name == "README.md" and "/actions/workflows/ci.yml/badge.svg" not in text:
            text = re.sub(r"\A(# .+\n)", lambda title: f"{title[1]}\n{badges(owner)}\n", text)
        text = text.replace(f"github.com/{old_owner}/", f"github.com/{owner}/")
        text = text.replace(f"https://{old_owner}.github.io", f"https://{owner}.github.io")
        text = text.replace(f"    - {old_owner}\n", f"    - {owner}\n").replace(old_contact, contact)
        if text != before:
            path.write_text(text, encoding="utf-8")
            changed.append(name)
    return changed


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    print("\n".join(fill_in(*sys.argv[1:])))
