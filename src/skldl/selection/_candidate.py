"""`Candidate`: an estimator with the settings among which selection chooses."""

import inspect
import math
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from itertools import product
from typing import Any

from sklearn.base import BaseEstimator, clone

from skldl.exceptions import Parameter, StudyError
from skldl.utils.spelling import plain

KNOWN_PACKAGES = ("skldl", "sklearn")
TRUTH_WORDS = {"true", "false", "yes", "no", "on", "off", "y", "n", "t", "f", "0", "1"}


@dataclass(frozen=True)
class Candidate:
    """An estimator, its fixed parameters, and the grid that selection searches: one column of a study's tables.

    Attributes
    ----------
    name : str
        Heading of the column.
    estimator : str or estimator
        Where the class is imported from, ``"package.module:Class"``, or an unfitted estimator. A class that is named
        by its import path must be derived from scikit-learn's ``BaseEstimator``.
    params : mapping
        Hyper-parameters that stay fixed. A mapping with the key ``estimator`` defines a nested estimator.
    grid : mapping
        For each hyper-parameter that selection chooses, the values to try. In a tie the earlier value wins, so that
        the simpler value should come first.
    path : str
        Name of the hyper-parameter of the grid whose values are computed together in one call of ``predict_path``;
        empty if every setting is fitted by itself.
    refine : str
        Name of a hyper-parameter of the grid with positive numbers. When all values are tried, the search also tries
        values between the best one and its neighbours, and beyond it if it is the largest or smallest.
    grids : mapping
        For the name of a dataset, values that replace those of the grid there: some datasets need larger values, and
        on others the same values would take hours.
    natural : mapping
        For a hyper-parameter of the grid, values that no other can go beyond, such as 1 neighbour or no penalty, or
        beyond which nothing changes, such as a very wide layer: there is no warning when selection chooses one of them
        at an end of the grid, unless the loss still falls towards it.
    trust : sequence of str or None
        Packages besides skldl and scikit-learn from which classes may be imported; None means any. A study file
        always has a list, an object of Python by default None.

    Examples
    --------
    >>> from skldl.selection import Candidate
    >>> Candidate("Mean", "skldl:MeanDistribution").make()
    MeanDistribution()
    >>> Candidate("Ridge", "sklearn.linear_model:Ridge", grid={"alpha": (1.0, 10.0)}).settings
    ({'alpha': 1.0}, {'alpha': 10.0})
    """

    name: str
    estimator: Any
    params: Mapping[str, Any] = field(default_factory=dict)
    grid: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    path: str = ""
    refine: str = ""
    grids: Mapping[str, Mapping[str, tuple[Any, ...]]] = field(default_factory=dict)
    natural: Mapping[str, tuple[Any, ...]] = field(default_factory=dict, compare=False)
    trust: tuple[str, ...] | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not self.name:
            raise StudyError("A candidate needs a name: the heading of its column.")
        object.__setattr__(self, "params", _frozen(self.params))
        for name in ("grid", "natural"):
            given = getattr(self, name)
            object.__setattr__(self, name, {key: tuple(_frozen(list(values))) for key, values in given.items()})
        object.__setattr__(self, "grids", {dataset: _frozen(grid) for dataset, grid in self.grids.items()})
        for name, values in self.grid.items():
            if not values:
                raise StudyError(f"Candidate {self.name}: the grid of {name} has no value to try.")
        for dataset, grid in self.grids.items():
            if unknown := sorted(set(grid) - set(self.grid)):
                raise StudyError(
                    f"Candidate {self.name}: {unknown[0]!r} of the grid for {dataset} is not a hyper-parameter of its "
                    "grid."
                )
            self.on(dataset)  # checks the values
        for role, name in (("path", self.path), ("refine", self.refine), *(("natural", n) for n in self.natural)):
            if name and name not in self.grid:
                raise StudyError(f"Candidate {self.name}: {role} = {name!r} is not a hyper-parameter of its grid.")
        if self.refine and not all(_is_positive_number(value) for value in self.grid[self.refine]):
            raise StudyError(f"Candidate {self.name}: refine = {self.refine!r} needs a grid of positive numbers.")

    def on(self, dataset: str) -> "Candidate":
        """The candidate with the grid that it has on a dataset.

        Parameters
        ----------
        dataset : str
            Name of the dataset, in any spelling.

        Returns
        -------
        Candidate
            The candidate itself where ``grids`` does not name the dataset.

        Examples
        --------
        >>> from skldl.selection import Candidate
        >>> known = Candidate("kNN", "skldl:AAKNN", grid={"n_neighbors": (1, 5)}, grids={"big": {"n_neighbors": (50,)}})
        >>> known.on("big").grid, known.on("small").grid
        ({'n_neighbors': (50,)}, {'n_neighbors': (1, 5)})
        """
        grid = next((grid for name, grid in self.grids.items() if plain(name) == plain(dataset)), None)
        return self if grid is None else replace(self, grid={**self.grid, **grid}, grids={})

    @property
    def n_settings(self) -> int:
        """Number of combinations of the grid, counted without making them."""
        return math.prod(len(values) for values in self.grid.values())

    @cached_property
    def settings(self) -> tuple[dict[str, Any], ...]:
        """Every combination of the grid; the values of ``path`` vary fastest."""
        names = [name for name in self.grid if name != self.path] + ([self.path] if self.path else [])
        return tuple(dict(zip(names, values, strict=True)) for values in product(*(self.grid[n] for n in names)))

    @property
    def class_name(self) -> str:
        """Name of the estimator's class; of a pipeline, that of its last step."""
        if isinstance(self.estimator, str):
            return self.estimator.rpartition(":")[2]
        steps = getattr(self.estimator, "steps", None)
        return type(steps[-1][1] if steps else self.estimator).__name__

    @property
    def is_baseline(self) -> bool:
        """Whether it predicts the mean distribution: the baseline of every comparison."""
        return self.class_name == BASELINE.class_name

    @property
    def needs_selection(self) -> bool:
        """Whether there is more than one setting to choose from."""
        return self.n_settings > 1

    def make(self, setting: Mapping[str, Any] | None = None, random_state: int | None = None) -> Any:
        """Build the unfitted estimator.

        Parameters
        ----------
        setting : mapping, default=None
            Values of the hyper-parameters of the grid.
        random_state : int, default=None
            Given to every parameter ``random_state`` that is neither fixed nor part of the setting.

        Returns
        -------
        estimator
            A new estimator.
        """
        if isinstance(self.estimator, str):
            self.check_imports()
            model = self._construct(self.estimator, self.params)
        else:
            model = clone(self.estimator).set_params(**self.params)
        # copies: a seed set in a nested estimator must not stay in the grid for the next task
        chosen = {name: clone(value, safe=False) for name, value in (setting or {}).items()}
        known = model.get_params()
        for name, value in chosen.items():
            if name not in known:
                raise StudyError(f"Candidate {self.name}: {type(model).__name__} has no hyper-parameter {name!r}.")
            self._check_truth_word(name, value, known[name])
        model = model.set_params(**chosen)
        return model if random_state is None else with_seed(model, random_state)

    def check_imports(self) -> None:
        """Raise for an import path that is invalid or belongs to a package that is not trusted; import nothing."""
        paths = [self.estimator] if isinstance(self.estimator, str) else []
        for path in [*paths, *_nested_paths([*self.params.values(), *self.grid.values(), *self.grids.values()])]:
            module, _, name = path.partition(":") if isinstance(path, str) else ("", "", "")
            if not (module and name):
                raise StudyError(
                    f"Candidate {self.name}: estimator = {shown(path)} must look like 'package.module:Class'."
                )
            package = module.partition(".")[0]
            if self.trust is not None and package not in (*KNOWN_PACKAGES, *self.trust):
                raise StudyError(
                    f"Candidate {self.name}: {shown(path)} would import the package {package!r}, which can run "
                    "any code. If you trust it, add ",
                    Parameter("trust", [package]),
                    ".",
                )

    def _construct(self, path: str, params: Mapping[str, Any]) -> Any:
        estimator_class = _import(path, self.name)
        defaults = inspect.signature(estimator_class).parameters
        for name, value in params.items():
            if name in defaults:
                self._check_truth_word(name, value, defaults[name].default)
        built = {name: self._build(value) for name, value in params.items()}
        try:
            return estimator_class(**built)
        except TypeError as error:  # Python's own words name the parameter that is unknown or missing
            raise StudyError(f"Candidate {self.name}: {path} cannot be built: {error}.") from error

    def _build(self, value: Any) -> Any:
        """A mapping with the key ``estimator`` becomes that estimator."""
        if isinstance(value, Mapping) and "estimator" in value:
            return self._construct(value["estimator"], {n: v for n, v in value.items() if n != "estimator"})
        return value

    def _check_truth_word(self, name: str, value: Any, default: Any) -> None:
        """Raise for a text where true or false is needed: in Python every text counts as true, "no" among them."""
        if isinstance(default, bool) and isinstance(value, str) and value.casefold() in TRUTH_WORDS:
            raise StudyError(f"Candidate {self.name}: {name} = {shown(value)} must be true or false, without quotes.")

    def to_dict(self) -> dict[str, Any]:
        """Describe the candidate in plain values, as a study file holds it.

        Returns
        -------
        dict
            The entries of a candidate in a study file.
        """
        described: dict[str, Any] = {"name": self.name}
        if isinstance(self.estimator, str):
            described["estimator"] = self.estimator
        else:  # only Python can build it again; the text keeps two studies apart
            described["described"] = _describe(self.estimator)
        for key in ("params", "grid", "grids", "path", "refine", "natural"):
            if value := getattr(self, key):
                described[key] = _plain(value)
        return described


def with_seed(model: Any, seed: int) -> Any:
    """Set every ``random_state`` of an estimator that is None, and return the estimator."""
    params = model.get_params()
    names = [name for name, value in params.items() if name.rpartition("__")[2] == "random_state" and value is None]
    return model.set_params(**dict.fromkeys(names, seed))


def shown(value: Any, limit: int = 100) -> str:
    """A value as Python writes it, for a message: of a very long one, the beginning.

    Examples
    --------
    >>> shown("x" * 1000, limit=10)
    "'xxxxxxxx…"
    """
    text = repr(value)
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _is_positive_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf


def _nested_paths(value: Any) -> Iterator[Any]:
    """Import paths of nested estimators at any depth."""
    if isinstance(value, Mapping):
        if "estimator" in value:
            yield value["estimator"]
        for name, item in value.items():
            if name != "estimator":
                yield from _nested_paths(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _nested_paths(item)


def _describe(estimator: Any) -> str:
    """All of an estimator's text; scikit-learn would leave out the middle of a long one."""
    text = estimator.__repr__(N_CHAR_MAX=sys.maxsize) if isinstance(estimator, BaseEstimator) else repr(estimator)
    return " ".join(text.split())


def _import(path: str, candidate: str) -> type[BaseEstimator]:
    module, _, name = path.partition(":")
    try:
        found = getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        raise StudyError(
            f"Candidate {candidate}: no module {error.name!r} for {path!r}. Is it installed, or on PYTHONPATH?"
        ) from error
    except AttributeError:
        raise StudyError(f"Candidate {candidate}: module {module!r} has no {name!r}.") from None
    if not (isinstance(found, type) and issubclass(found, BaseEstimator)):
        raise StudyError(
            f"Candidate {candidate}: {path!r} is not a class derived from sklearn.base.BaseEstimator, and nothing else "
            "is built from a name."
        )
    return found


def _frozen(value: Any) -> Any:
    """Lists become tuples, so that values of a TOML file equal those of Python."""
    if isinstance(value, list | tuple):
        return tuple(_frozen(item) for item in value)
    if isinstance(value, Mapping):
        return {name: _frozen(item) for name, item in value.items()}
    return value


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, bool | int | float | str):
        return value
    return repr(value)


BASELINE = Candidate("Mean", "skldl:MeanDistribution")
"""The mean of the training distributions, which every comparison has as its reference."""
