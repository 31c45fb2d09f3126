"""`make_missing` hides degrees for studies; notes for users of datasets with missing degrees."""

from typing import Any

import numpy as np

from skldl.data._dataset import Dataset
from skldl.exceptions import DataError, Parameter
from skldl.utils.missing import has_gaps, informative
from skldl.utils.parameters import FRACTION, NONE, check_value, integer, one_of
from skldl.utils.typing import FloatArray
from skldl.utils.validation import check_distributions

MECHANISMS = ("uniform", "degree", "label")
LEAST = 2  # observed labels that a ratio needs


def make_missing(
    D: Any,
    rate: float = 0.5,
    *,
    mechanism: str = "uniform",
    renormalise: bool = False,
    keep: int = LEAST,
    random_state: int | None = 0,
) -> FloatArray:
    r"""Hide degrees of label distributions: NaN where they are hidden.

    Parameters
    ----------
    D : array-like or DataFrame of shape (n_samples, n_labels)
        Distributions.
    rate : float, default=0.5
        Share of the cells to hide, from 0 to 1.
    mechanism : {"uniform", "degree", "label"}, default="uniform"
        What is hidden. "uniform": each cell with the same probability. "degree": small degrees first; in each row cells
        are drawn one after the other with probabilities in proportion to 1 − d. "label": whole labels, the same in all
        rows but a tenth, drawn at random, in which everything is observed.
    renormalise : bool, default=False
        Whether what is left is divided by its sum, so that only ratios are known.
    keep : int, default=2
        Number of labels that stay in every row; one alone carries no ratio. At the highest rates fewer cells are
        hidden for that.
    random_state : int, default=0
        Seed.

    Returns
    -------
    ndarray of shape (n_samples, n_labels)
        The degrees with NaN. A row whose remaining degrees are all zero keeps its largest one, too.

    Examples
    --------
    >>> from skldl.data import make_missing
    >>> make_missing([[0.5, 0.3, 0.2], [0.2, 0.2, 0.6]], rate=0.34)
    array([[nan, 0.3, 0.2],
           [0.2, nan, 0.6]])
    """
    check_value("rate", rate, FRACTION)
    check_value("mechanism", mechanism, one_of(*MECHANISMS))
    check_value("random_state", random_state, NONE | integer(at_least=0))
    table = check_distributions(D, name="D")
    n_samples, n_labels = table.shape
    if not 1 <= keep <= n_labels:
        raise DataError(Parameter("keep", keep), f" must lie between 1 and the number of labels, {n_labels}.")
    # with the plain seed, gaps would depend on degrees that were themselves drawn from default_rng of the same seed
    generator = np.random.default_rng(None if random_state is None else [random_state, len("make_missing")])
    if mechanism == "label":
        n_hidden = min(round(rate * n_labels), n_labels - keep)
        labels = generator.permutation(n_labels)[:n_hidden]
        rows = generator.permutation(n_samples)[-(-n_samples // 10) :]
        gaps = np.zeros(table.shape, dtype=bool)
        gaps[np.ix_(rows, labels)] = True
    else:
        # keys whose order is a draw without replacement: Efraimidis and Spirakis, with probabilities 1 or 1 − d
        odds = np.ones_like(table) if mechanism == "uniform" else np.maximum(1.0 - table, 1e-9)
        keys = generator.exponential(size=table.shape) / odds
        place = keys.argsort(axis=1).argsort(axis=1)
        exact = rate * n_labels
        number = np.floor(exact) + (generator.uniform(size=n_samples) < exact - np.floor(exact))
        gaps = place < np.minimum(number, n_labels - keep)[:, None]
    empty = np.where(gaps, 0.0, table).sum(axis=1) == 0
    gaps[np.flatnonzero(empty), table.argmax(axis=1)[empty]] = False
    hidden = np.where(gaps, np.nan, table)
    return np.asarray(hidden / np.nansum(hidden, axis=1, keepdims=True) if renormalise else hidden)


def with_note_of_gaps(dataset: Dataset, n_gaps: int) -> Dataset:
    """Add a note about label cells that were empty in the source, and how they are read, if there are any."""
    if not n_gaps:
        return dataset
    note = f"{n_gaps} of {dataset.D.size} label cells are empty: degrees that were not observed. "
    if not has_gaps(dataset.D):
        note += "They follow from the others, since the degrees of a row sum to one. "
    else:
        note += {
            "renormalised": "The observed ones sum to one in every row: only their ratios count "
            "(missing='renormalised'). ",
            "degrees": "The observed ones sum to less than one in some rows: the rest of the mass belongs to the empty "
            "labels (missing='degrees'). ",
        }[dataset.reading] + "Only some models learn from such rows. "
    return dataset.changed(notes=(*dataset.notes, f"{note}Write 0 where a label does not apply."))


def rows_to_judge_by(dataset: Dataset) -> Dataset:
    """Leave out rows whose observed degrees carry no information, for training and for tests, and note how many.

    The dataset itself comes back if all of its rows, or none, carry something.
    """
    if not has_gaps(dataset.D):
        return dataset
    kept = informative(dataset.D, dataset.reading)
    if kept.all() or not kept.any():
        return dataset
    reason = (
        "fewer than two observed labels, and no ratio follows from one"
        if dataset.reading == "renormalised"
        else "no observed label"
    )
    note = f"{int((~kept).sum())} of {len(kept)} rows have {reason}: they are left out."
    return dataset.take(np.flatnonzero(kept)).changed(notes=(*dataset.notes, note))
