"""Results of a search: the criterion of every setting, the best one, and failures."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from skldl.exceptions import StudyError
from skldl.selection._candidate import Candidate
from skldl.utils.typing import FloatArray, IntArray

Setting = Mapping[str, Any]
Pair = tuple[IntArray, IntArray]


@dataclass(frozen=True)
class Failure:
    """A setting that could not be fitted, or could not predict.

    Attributes
    ----------
    candidate : str
        Name of the candidate.
    setting : mapping
        The setting.
    reason : str
        Class and message of the error.

    Examples
    --------
    >>> from skldl.selection import Failure
    >>> Failure("AA-kNN", {"n_neighbors": 0}, "ValueError: n_neighbors=0").candidate
    'AA-kNN'
    """

    candidate: str
    setting: Setting
    reason: str

    def __str__(self) -> str:
        return f"{dict(self.setting)}: {self.reason}"


@dataclass(frozen=True, eq=False)
class Trials:
    """Results of a search for one candidate.

    Attributes
    ----------
    candidate : Candidate
        The candidate.
    settings : tuple of dict
        The settings that were tried: those of its grid, then those of the refinement.
    rows : list of ndarray of shape (n_settings, n_validation_rows)
        For each pair, the criterion of each validation row; NaN where the setting failed.
    values : ndarray of shape (n_pairs, n_settings)
        The (weighted) means of the same.
    failures : list of Failure
        The settings that failed, with the reason.
    higher_is_better : bool
        Whether a higher value of the criterion is better.

    Examples
    --------
    >>> import numpy as np
    >>> from skldl.data import Dataset
    >>> from skldl.selection import Candidate, assign_folds, pairs_of, search
    >>> x = np.linspace(0.1, 0.9, 30)
    >>> dataset = Dataset("line", x[:, None], np.column_stack([x, 1 - x]))
    >>> candidates = [Candidate("AA-kNN", "skldl:AAKNN", grid={"n_neighbors": (15, 3)})]
    >>> (trials,) = search(dataset, candidates, list(pairs_of(assign_folds(30, 3, random_state=0)))).trials
    >>> trials.settings, trials.values.shape
    (({'n_neighbors': 15}, {'n_neighbors': 3}), (3, 2))
    """

    candidate: Candidate
    settings: tuple[Setting, ...]
    rows: list[FloatArray]
    values: FloatArray
    failures: list[Failure]
    higher_is_better: bool

    @property
    def means(self) -> FloatArray:
        """Mean of each setting over the pairs; NaN for a setting that failed on any of them."""
        return np.asarray(np.mean(self.values, axis=0))

    @property
    def errors(self) -> list[str]:
        """The failures as text."""
        return [str(failure) for failure in self.failures]

    def best(self, pairs: Sequence[int] | None = None) -> int:
        """Find the best setting; in a tie, the first.

        Parameters
        ----------
        pairs : sequence of int, default=None
            Which pairs count; None means all.

        Returns
        -------
        int
            Index of the setting in ``settings``. A setting that failed on any pair is out.
        """
        return choose(self.candidate, self._whole(pairs), self.errors, self._sign)

    @property
    def _sign(self) -> float:
        return -1.0 if self.higher_is_better else 1.0

    def _whole(self, pairs: Sequence[int] | None) -> FloatArray:
        """Values on some pairs, without those of settings that failed on any pair."""
        return np.where(np.isnan(self.means), np.nan, self.values if pairs is None else self.values[pairs])

    def loss(self, pairs: Sequence[int] | None = None) -> float:
        """Mean criterion of the best setting, as a loss; infinite if no setting could be fitted.

        Parameters
        ----------
        pairs : sequence of int, default=None
            Which pairs of training and validation rows count; None means all.

        Returns
        -------
        float
            The loss.
        """
        losses = self._sign * np.mean(self._whole(pairs), axis=0)
        return math.inf if np.isnan(losses).all() else float(np.nanmin(losses))


@dataclass(frozen=True, eq=False)
class SearchResult:
    """The result of a search.

    Attributes
    ----------
    trials : tuple of Trials
        One for each candidate, in the order given.
    pairs : tuple of pairs
        Rows to fit on and rows to validate on.
    criterion : str
        Name of the measure.

    Examples
    --------
    >>> import numpy as np
    >>> from skldl.data import Dataset
    >>> from skldl.selection import Candidate, assign_folds, pairs_of, search
    >>> x = np.linspace(0.1, 0.9, 30)
    >>> dataset = Dataset("line", x[:, None], np.column_stack([x, 1 - x]))
    >>> candidates = [Candidate("AA-kNN", "skldl:AAKNN", grid={"n_neighbors": (15, 3)})]
    >>> result = search(dataset, candidates, list(pairs_of(assign_folds(30, 3, random_state=0))))
    >>> len(result.trials), len(result.pairs), result.criterion
    (1, 3, 'kullback_leibler')
    """

    trials: tuple[Trials, ...]
    pairs: tuple[Pair, ...]
    criterion: str

    @property
    def failures(self) -> list[Failure]:
        """The failures of all candidates."""
        return [failure for trials in self.trials for failure in trials.failures]

    def best(self, pairs: Sequence[int] | None = None) -> tuple[Trials, int]:
        """Find the best setting of the best candidate; in a tie, the first.

        Parameters
        ----------
        pairs : sequence of int, default=None
            Which pairs count; None means all.

        Returns
        -------
        Trials, int
            The trials of the candidate, and the index of its setting.
        """
        losses = [trials.loss(pairs) for trials in self.trials]
        if not np.isfinite(losses).any():
            raise StudyError(f"No candidate could be fitted. First: {next(iter(self.failures), 'not a number')}")
        trials = self.trials[int(np.argmin(losses))]
        return trials, trials.best(pairs)


def choose(candidate: Candidate, trials: Any, errors: Sequence[str], sign: float = 1.0) -> int:
    """Choose the setting whose criterion, an array (n_pairs, n_settings), is best on average; in a tie, the first.

    A setting that failed on any pair is out. ``sign`` is -1 if the criterion is a similarity, of which the highest is
    best.
    """
    means = np.mean(np.asarray(trials, dtype=np.float64), axis=0)
    if np.isnan(means).all():
        raise StudyError(f"No setting of {candidate.name} could be fitted. First: {next(iter(errors), 'not a number')}")
    return int(np.nanargmin(sign * means))
