"""All measures by name, and the groups among them."""

from collections.abc import Iterable, Mapping
from types import ModuleType

from sklearn.metrics import make_scorer

from skldl.exceptions import UnknownNameError
from skldl.metrics import _cha, _later
from skldl.metrics._measure import Measure


def _measures_in(module: ModuleType) -> dict[str, Measure]:
    """The measures that a module defines, by name and in its order."""
    return {value.name: value for value in vars(module).values() if isinstance(value, Measure)}


_CHA = _measures_in(_cha)
CHA_MEASURES = {name: measure for name, measure in _CHA.items() if measure.family != _cha.VICISSITUDE}
VICISSITUDE_MEASURES = {name: measure for name, measure in _CHA.items() if measure.family == _cha.VICISSITUDE}
LATER_MEASURES = _measures_in(_later)
MEASURES: dict[str, Measure] = {**CHA_MEASURES, **VICISSITUDE_MEASURES, **LATER_MEASURES}
PAPER_MEASURES = {
    name: MEASURES[name] for name in ("chebyshev", "clark", "canberra", "kullback_leibler", "cosine", "intersection")
}
SCORERS = {name: make_scorer(measure, greater_is_better=measure.higher_is_better) for name, measure in MEASURES.items()}


def resolve(measures: Iterable[str | Measure], known: Mapping[str, Measure] = MEASURES) -> list[Measure]:
    """Turn names and measure objects into measure objects."""
    found = []
    for measure in [measures] if isinstance(measures, str | Measure) else measures:
        if isinstance(measure, Measure):
            found.append(measure)
        elif measure in known:
            found.append(known[measure])
        else:
            raise UnknownNameError(f"No measure is called {measure!r}. The known ones are {', '.join(known)}.")
    return found
