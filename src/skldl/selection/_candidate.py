"""`Contender`: an estimator with the settings among which selection chooses."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from itertools import product
from typing import Any

from sklearn.base import BaseEstimator, clone

from skldl.exceptions import StudyError


@dataclass(frozen=True)
class Contender:
    """One column of the tables: an estimator, its fixed parameters, and the grid that selection searches.

    Attributes
    ----------
    name : str
        Heading of the column.
    estimator : str or estimator
        Where the class is imported from, ``"package.module:Class"``, or an unfitted estimator.
    params : mapping
        Hyper-parameters that stay fixed. A mapping with the key ``estimator`` stands for a nested estimator.
    grid : mapping
        For each hyper-parameter that selection chooses, the values to try. In a tie the earlier value wins, so that
        the simpler value should come first.
    path : str
        Name of the hyper-parameter of the grid whose values share work in one call of ``predict_path``; empty if
        every setting is fitted by itself.

    Examples
    --------
    >>> from skldl.experiments import Contender
    >>> contender = Contender("Mean", "skldl:MeanDistribution")
    >>> contender.make()
    MeanDistribution()
    >>> Contender("Ridge", "sklearn.linear_model:Ridge", grid={"alpha": (1.0, 10.0)}).settings
    ({'alpha': 1.0}, {'alpha': 10.0})
    """

    name: str
    estimator: Any
    params: Mapping[str, Any] = field(default_factory=dict)
    grid: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    path: str = ""

    def __post_init__(self) -> None:
        if not self.name:
            raise StudyError("A contender needs a name: the heading of its column.")
        object.__setattr__(self, "params", _frozen(self.params))
        object.__setattr__(self, "grid", {name: tuple(_frozen(list(v))) for name, v in self.grid.items()})
        for name, values in self.grid.items():
            if not values:
                raise StudyError(f"Contender {self.name}: the grid of {name} has no value to try.")
        if self.path and self.path not in self.grid:
            raise StudyError(f"Contender {self.name}: path = {self.path!r} is not a hyper-parameter of its grid.")

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
    def needs_selection(self) -> bool:
        """Whether there is more than one setting to choose from."""
        return len(self.settings) > 1

    def make(self, setting: Mapping[str, Any] | None = None, seed: int | None = None) -> Any:
        """Build the unfitted estimator.

        Parameters
        ----------
        setting : mapping, default=None
            Values of the hyper-parameters of the grid.
        seed : int, default=None
            Given to every parameter ``random_state`` that is neither fixed nor part of the setting.

        Returns
        -------
        estimator
            A new estimator.
        """
        if isinstance(self.estimator, str):
            model = _construct(self.estimator, self.params, self.name)
        else:
            model = clone(self.estimator).set_params(**self.params)
        chosen = dict(setting or {})
        if seed is not None:
            for name, value in model.get_params().items():
                if name.rpartition("__")[2] == "random_state" and value is None and name not in chosen:
                    chosen[name] = seed
        known = model.get_params()
        for name in chosen:
            if name not in known:
                raise StudyError(f"Contender {self.name}: {type(model).__name__} has no hyper-parameter {name!r}.")
        return model.set_params(**chosen) if chosen else model

    def to_dict(self) -> dict[str, Any]:
        """Describe the contender in plain values, as a study file holds it."""
        told: dict[str, Any] = {"name": self.name}
        if isinstance(self.estimator, str):
            told["estimator"] = self.estimator
        else:  # only Python can build it again; the text keeps two studies apart
            told["described"] = _describe(self.estimator)
        if self.params:
            told["params"] = _plain(self.params)
        if self.grid:
            told["grid"] = _plain(self.grid)
        if self.path:
            told["path"] = self.path
        return told


def _describe(estimator: Any) -> str:
    """All of an estimator's text; scikit-learn would leave out the middle of a long one."""
    text = estimator.__repr__(N_CHAR_MAX=sys.maxsize) if isinstance(estimator, BaseEstimator) else repr(estimator)
    return " ".join(text.split())


def _import(path: str, contender: str) -> Any:
    module, _, name = path.partition(":")
    if not name:
        raise StudyError(f"Contender {contender}: estimator = {path!r} must look like 'package.module:Class'.")
    try:
        return getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        raise StudyError(
            f"Contender {contender}: no module {error.name!r} for {path!r}. Is it installed, or on PYTHONPATH?"
        ) from error
    except AttributeError:
        raise StudyError(f"Contender {contender}: module {module!r} has no {name!r}.") from None


def _build(value: Any, contender: str) -> Any:
    """A mapping with the key ``estimator`` becomes that estimator."""
    if isinstance(value, Mapping) and "estimator" in value:
        return _construct(value["estimator"], {n: v for n, v in value.items() if n != "estimator"}, contender)
    return value


def _construct(path: str, params: Mapping[str, Any], contender: str) -> Any:
    estimator_class = _import(path, contender)
    try:
        return estimator_class(**{name: _build(value, contender) for name, value in params.items()})
    except TypeError as error:  # Python's own words name the parameter that is unknown or missing
        raise StudyError(f"Contender {contender}: {path} cannot be built: {error}.") from error


def _frozen(value: Any) -> Any:
    """Lists become tuples, so that what a TOML file says equals what Python says."""
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
