"""Algorithms by name: candidates of selection from names in any spelling.

>>> from skldl.names import find_candidate
>>> find_candidate("sabfgs").name
'SA-BFGS'
"""

from collections.abc import Iterable
from functools import cache

from skldl._algorithms import ALGORITHMS, CAPABILITIES, Algorithm, can
from skldl.exceptions import UnknownNameError
from skldl.selection import Candidate
from skldl.selection._candidate import shown
from skldl.utils.spelling import plain

__all__ = ["ALGORITHMS", "CAPABILITIES", "Algorithm", "algorithm_titles", "find_candidate"]


def find_candidate(word: str, among: Iterable[Candidate] = ()) -> Candidate:
    """Find a candidate by its title or class name in any spelling, or by an import path.

    Parameters
    ----------
    word : str
        Such as ``SA-BFGS``, ``sabfgs``, ``forest`` or ``my_package.models:MyLearner``.
    among : iterable of Candidate, default=()
        Candidates to prefer to those of this package, such as those of a study.

    Returns
    -------
    Candidate
        The candidate. One of this package has the fixed hyper-parameters and the grid of its entry in `ALGORITHMS`; one
        that is given by an import path has neither.

    Raises
    ------
    UnknownNameError
        If no algorithm has this name.

    Examples
    --------
    >>> from skldl.names import find_candidate
    >>> find_candidate("aa-knn").make()
    AAKNN()
    >>> find_candidate("forest").class_name
    'AARegressor'
    """
    for candidate in among:
        if plain(word) in (plain(candidate.name), plain(candidate.class_name)):
            return candidate
    if ":" in word:
        return Candidate(word.rpartition(":")[2], word)
    for algorithm in ALGORITHMS:
        if algorithm.title and plain(word) in (plain(algorithm.title), plain(algorithm.class_name)):
            return _candidate(algorithm.title)
    raise UnknownNameError(
        f"No algorithm is called {shown(word)}. Known: {', '.join(algorithm_titles())}. An algorithm of your own is "
        "given by its import path, package.module:Class."
    )


def algorithm_titles(capability: str | None = None) -> list[str]:
    """Titles of all algorithms that can be candidates, in the order of the documentation.

    Parameters
    ----------
    capability : str, default=None
        One of `CAPABILITIES`, such as "chunks": only algorithms that have it. Their classes are imported.

    Returns
    -------
    list of str
        The titles.

    Examples
    --------
    >>> from skldl.names import algorithm_titles
    >>> "SA-BFGS" in algorithm_titles()
    True
    >>> algorithm_titles("chunks")
    ['Mean', 'SA-BFGS', 'SA-BFGS-CV', 'SA-IIS', 'PT-Bayes']
    """
    named = (algorithm for algorithm in ALGORITHMS if algorithm.title)
    return [algorithm.title for algorithm in named if capability is None or can(algorithm, capability)]


@cache
def _candidate(title: str) -> Candidate:
    algorithm = next(algorithm for algorithm in ALGORITHMS if algorithm.title == title)
    return Candidate(algorithm.title, f"skldl:{algorithm.class_name}", algorithm.params, algorithm.grid, algorithm.path)
