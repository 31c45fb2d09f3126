"""`RaterSummary`: statistics of the raters of a dataset for figures and records, without their votes."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np

from skldl.annotators._dawid_skene import DawidSkene
from skldl.annotators._rater_table import RaterTable, rater_table
from skldl.annotators._triples import read_triples
from skldl.utils.typing import FloatArray

MAX_KEPT = 200
"""Maximum number of raters in a summary as plain values; they are evenly spaced from the best to the worst."""
_WHOLE = ("n_votes", "n_compared")
_WORDS = ("rater", "favourite", "flags")


@dataclass(frozen=True, eq=False)
class RaterSummary:
    """Quality of the raters, and the confusion of all of them together.

    Parameters
    ----------
    table : RaterTable
        Quality of each rater.
    confusion : ndarray of shape (n_labels, n_labels)
        Probability of each answer (column) to each true label (row), averaged over all votes.
    label_names : list
        Names of the labels.
    model : {"confusion", "one-coin", "ordinal"}
        The model of `DawidSkene` that was fitted.
    n_raters, n_votes : int
        Number of raters and of votes, also where ``table`` holds only some of the raters.
    flagged : dict
        From each flag to the number of raters who have it, of all raters.

    Examples
    --------
    >>> import numpy as np
    >>> from skldl.annotators import RaterSummary
    >>> generator = np.random.default_rng(0)
    >>> truth, noise = generator.integers(1, 6, size=(2, 200))
    >>> votes = np.stack([truth, np.minimum(truth + 1, 5), truth, noise], axis=1).astype(str)
    >>> summary = RaterSummary.from_votes(votes)
    >>> summary.model, summary.n_votes, summary.flagged
    ('ordinal', 800, {'spammer': 1})
    >>> summary.table.severity.round(1)
    array([ 0. ,  0.8,  0. , -0.1])
    """

    table: RaterTable
    confusion: FloatArray
    label_names: list[Any]
    model: str
    n_raters: int
    n_votes: int
    flagged: dict[str, int]

    @classmethod
    def from_model(cls, model: DawidSkene, table: RaterTable | None = None) -> Self:
        """Summarise a fitted model.

        Parameters
        ----------
        model : DawidSkene
            Fitted.
        table : RaterTable, default=None
            Quality of its raters, if it is known already.

        Returns
        -------
        RaterSummary
            The summary.
        """
        table = rater_table(model) if table is None else table
        return cls(
            table,
            np.einsum("r,rkl->kl", table.n_votes / table.n_votes.sum(), model.confusion_),
            list(model.label_names_),
            model.model,
            len(table),
            int(table.n_votes.sum()),
            table._flagged,
        )

    @classmethod
    def from_votes(
        cls, votes: Any, *, item: Any = None, annotator: Any = None, label: Any = None, labels: Any = None
    ) -> Self:
        """Fit a model that suits the labels, and summarise it.

        For labels that are numbers, or text that can be converted to numbers, the model is "ordinal", else "one-coin".

        Parameters
        ----------
        votes : table
            As in `DawidSkene.fit`.
        item, annotator, label : column names, default=None
            The three columns of a long table; None for a wide one.
        labels : sequence, default=None
            All labels, in their order; numbers are put in the order of their values.

        Returns
        -------
        RaterSummary
            The summary.
        """
        triples = read_triples(votes, item=item, annotator=annotator, label=label, labels=labels)
        values = _numbers(triples.labels)
        if values is not None:
            ranks = np.argsort(np.argsort(values))
            triples = replace(triples, label=ranks[triples.label], labels=sorted(values))
        model = DawidSkene("one-coin" if values is None else "ordinal")._fit_triples(triples)
        return cls.from_model(model, rater_table(model, ordered=values is not None))

    def to_dict(self, *, named: bool = True) -> dict[str, Any]:
        """Plain values for a file; of more than 200 raters some are kept.

        Parameters
        ----------
        named : bool, default=True
            Keep the names of the raters; else they are numbered.

        Returns
        -------
        dict
            What `from_dict` takes. No single vote can be reconstructed from it.
        """
        kept = self.table
        if len(kept) > MAX_KEPT:
            some = kept._best_first[np.linspace(0, len(kept) - 1, MAX_KEPT).round().astype(np.intp)]
            kept = replace(kept, **{name: _taken(getattr(kept, name), some) for name in _column_names()})
        columns = {
            name: [value if name in (*_WHOLE, *_WORDS) else float(f"{value:.6g}") for value in column]
            for name, column in kept.columns().items()
        }
        columns["rater"] = [str(name) if named else str(number) for number, name in enumerate(kept.rater, start=1)]
        return {
            "model": self.model,
            "n_raters": self.n_raters,
            "n_votes": self.n_votes,
            "flagged": self.flagged,
            "label_names": list(self.label_names),
            "confusion": [[float(f"{value:.6g}") for value in row] for row in self.confusion],
            "raters": columns,
        }

    @classmethod
    def from_dict(cls, summary: Mapping[str, Any]) -> Self:
        """Read the output of `to_dict`, also after a conversion to JSON, where NaN is text.

        Parameters
        ----------
        summary : mapping
            The values.

        Returns
        -------
        RaterSummary
            The summary.
        """
        columns: dict[str, Any] = {
            name: list(values) if name in _WORDS else np.array(values, dtype=np.intp if name in _WHOLE else np.float64)
            for name, values in summary["raters"].items()
        }
        confusion = np.array(summary["confusion"], dtype=np.float64)
        sizes = {name: summary[name] for name in ("label_names", "model", "n_raters", "n_votes", "flagged")}
        return cls(RaterTable(**columns), confusion, **sizes)


def _column_names() -> list[str]:
    return [column.name for column in fields(RaterTable)]


def _taken(column: Any, positions: Any) -> Any:
    return [column[i] for i in positions] if isinstance(column, list) else column[positions]


def _numbers(labels: list[Any]) -> list[int | float] | None:
    """The values of labels that are numbers or can be converted to numbers, all different; or None."""
    try:
        values = [float(label) for label in labels if not isinstance(label, bool)]
    except (TypeError, ValueError):
        return None
    if len(set(values)) < len(labels) or not np.isfinite(values).all():
        return None
    return [int(value) for value in values] if all(value.is_integer() for value in values) else values
