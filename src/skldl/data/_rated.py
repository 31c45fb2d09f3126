"""Common code for the rated words and texts of VADER: the bundled files, the scale, and the dataset of ratings."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import resources
from typing import Any

import numpy as np

from skldl.data._dataset import Dataset
from skldl.exceptions import DatasetError

LABELS = tuple(range(-4, 5))
CITATION = (
    'C. J. Hutto and E. Gilbert, "VADER: A parsimonious rule-based model for sentiment analysis of social media text", '
    "ICWSM 2014."
)
LICENCE = "MIT licence, Copyright (c) 2016 C.J. Hutto."


@contextmanager
def open_bundled(file_name: str) -> Iterator[Any]:
    """Open a bundled archive of arrays."""
    try:
        stream = resources.files("skldl.data").joinpath("bundled", file_name).open("rb")
    except FileNotFoundError as error:
        raise DatasetError(
            f"The bundled file {file_name} is missing from this installation. Install the package again: "
            "pip install --force-reinstall scikit-ldl"
        ) from error
    with stream, np.load(stream, allow_pickle=False) as content:
        yield content


def rated(name: str, X: Any, ratings: Sequence[Sequence[int]], **facts: Any) -> Dataset:
    """A dataset of items rated from -4 to 4: the degree of a label is the share of raters who chose it.

    Rows can have different numbers of ratings; ``votes`` are NaN behind the last one unless they are among the facts,
    which are further attributes.
    """
    counts = np.stack([np.bincount(np.array(row) + 4, minlength=len(LABELS)) for row in ratings])
    if "votes" not in facts:
        facts["votes"] = np.full((len(ratings), max(map(len, ratings))), np.nan)
        for votes, row in zip(facts["votes"], ratings, strict=True):
            votes[: len(row)] = row
    return Dataset(
        name,
        X,
        counts / counts.sum(axis=1, keepdims=True),
        label_names=tuple(str(label) for label in LABELS),
        citation=CITATION,
        counts=counts,
        **facts,
    )
