"""`RaterTable`: what is known about the quality of raters, as columns or as rows."""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from skldl.utils.typing import FloatArray, IntArray

FLAGS = {
    "spammer": "answers are unrelated to the truth",
    "contrary": "answers agree with the truth less often than by chance",
    "habit": "one label is used far more often than the items explain",
}


@dataclass(frozen=True, eq=False, repr=False)
class RaterTable:
    """Quality of raters: one array for each column, one entry for each rater.

    Attributes
    ----------
    rater : list
        Names.
    n_votes, n_compared : ndarray of int
        Number of votes, and of those among them for items that others rated too (or whose truth is known).
    reliability, reliability_low, reliability_high : ndarray
        Probability that an answer is the true label, averaged over the true labels as they are distributed, with its
        interval.
    agreement : ndarray
        Mean probability that the answer is the true label, judged by the others. NaN where nothing can be compared.
    informedness, informedness_low, informedness_high : ndarray
        Share of the answers that come from the truth and not from habit or chance, with its interval: 0 for answers
        that are unrelated to the truth, 1 for answers that always meet it.
    severity, severity_low, severity_high : ndarray
        Mean difference between the answer and the truth as the others see it, with its interval; NaN unless the
        labels are numbers.
    favourite : list
        The label that the rater over-uses most.
    favourite_share, favourite_expected : ndarray
        Its share among the answers, and the share that the items explain.
    weight : ndarray
        For `skldl.distributions.from_votes`: the informedness, at least zero, shrunk towards that of all raters where
        votes are few, and scaled so that the mean over all votes is 1.
    flags : list of str
        "spammer", "contrary", "habit", several of them with a blank between, or nothing.

    Examples
    --------
    >>> from skldl.annotators import DawidSkene, rater_table
    >>> votes = {"item": [0, 0, 1, 1, 2, 2], "who": list("ababab"), "label": list("xxyyxy")}
    >>> model = DawidSkene("one-coin").fit(votes, item="item", annotator="who", label="label")
    >>> table = rater_table(model)
    >>> table.rater, table.n_votes.tolist()
    (['a', 'b'], [3, 3])
    """

    rater: list[Any]
    n_votes: IntArray
    n_compared: IntArray
    reliability: FloatArray
    reliability_low: FloatArray
    reliability_high: FloatArray
    agreement: FloatArray
    informedness: FloatArray
    informedness_low: FloatArray
    informedness_high: FloatArray
    severity: FloatArray
    severity_low: FloatArray
    severity_high: FloatArray
    favourite: list[Any]
    favourite_share: FloatArray
    favourite_expected: FloatArray
    weight: FloatArray
    flags: list[str]

    def __len__(self) -> int:
        return len(self.rater)

    @property
    def _flagged(self) -> dict[str, int]:
        """From each flag that a rater has to the number of raters who have it."""
        counts = {name: sum(name in flags.split() for flags in self.flags) for name in FLAGS}
        return {name: number for name, number in counts.items() if number}

    @property
    def _best_first(self) -> IntArray:
        """Raters in the order of their informedness; those without one are last."""
        known = np.isfinite(self.informedness)
        return np.argsort(np.where(known, -self.informedness, np.inf), kind="stable")

    def __repr__(self) -> str:
        counts = ", ".join(f"{number} {name}" for name, number in self._flagged.items()) or "no rater flagged"
        known = self.informedness[np.isfinite(self.informedness)]
        typical = f", median informedness {np.median(known):.2f}" if len(known) else ""
        return f"RaterTable({len(self)} raters, {int(self.n_votes.sum())} votes{typical}; {counts})"

    def weights(self) -> dict[Any, float]:
        """Weight of each rater, by name.

        Returns
        -------
        dict
            From rater to weight.
        """
        return dict(zip(self.rater, self.weight.tolist(), strict=True))

    def rater_weights(self) -> dict[Any, float]:
        """Weight of each rater, by name; ``from_votes(votes, weights=table)`` calls it.

        Returns
        -------
        dict
            From rater to weight.
        """
        return self.weights()

    def columns(self) -> dict[str, list[Any]]:
        """All columns as lists of plain values; ``pandas.DataFrame(table.columns())`` makes a frame of them.

        Returns
        -------
        dict
            From the name of each column to its values, in the order of the attributes.
        """
        return {column.name: np.asarray(getattr(self, column.name), dtype=object).tolist() for column in fields(self)}

    def rows(self) -> list[dict[str, Any]]:
        """One dict for each rater.

        Returns
        -------
        list of dict
            The rows, in the order of the raters.
        """
        columns = self.columns()
        return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
