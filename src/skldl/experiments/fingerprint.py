"""The fingerprint of a study: a hash of everything that can change a number."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from skldl.experiments.store import json_ready

ROLES = ("labels", "features", "kind", "weight", "groups", "item", "annotator", "drop", "text", "categories")
"""Arguments of `skldl.data.load_dataset` for the roles of columns."""

READING = ("encoding", "decimal", "na_values")
"""Arguments of `skldl.data.TableFile`."""

COLUMNS = (*ROLES, *READING)


def fingerprint_of(entries: Mapping[str, Any]) -> str:
    """Hash what `Study.to_dict` gives, or the header of a record file holds, into 16 hexadecimal digits.

    The candidates are hashed under the name ``contenders``, which recorded fingerprints contain.
    """
    hashed = {key: value for key, value in entries.items() if key not in ("candidates", "timeout")} | {"title": ""}
    # a file may move, and columns have their effect through the data, which have their own fingerprint
    hashed["datasets"] = _without(entries["datasets"], {"source", "splits", *COLUMNS} - {"text", "categories"})
    hashed["contenders"] = _without(entries["candidates"], {"natural"})
    return hashlib.sha256(json.dumps(json_ready(hashed), sort_keys=True).encode()).hexdigest()[:16]


def _without(entries: Iterable[Mapping[str, Any]], keys: set[str]) -> list[dict[str, Any]]:
    return [{key: value for key, value in entry.items() if key not in keys} for entry in entries]
