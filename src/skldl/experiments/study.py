"""`Study`: what is compared on what, by which protocol and measures; from a TOML file or from Python."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from skldl.data._spelling import find, plain
from skldl.exceptions import StudyError
from skldl.metrics import MEASURES, PAPER_MEASURES
from skldl.selection._candidate import Contender

PROTOCOL_NAMES = ("nested", "geng2016", "holdout")
ORDERS = ("file", "shuffled")
BASELINE = Contender("Mean", "skldl:MeanDistribution")
_MEASURE_NAMES = {
    **{name: name for name in MEASURES},
    **{measure.title: name for name, measure in MEASURES.items()},
    "kl": "kullback_leibler",
}


def measure_name(word: str) -> str:
    """Find the key of a measure by its name, its title or a usual abbreviation.

    Examples
    --------
    >>> measure_name("KL"), measure_name("Kullback-Leibler")
    ('kullback_leibler', 'kullback_leibler')
    """
    return find(word, _MEASURE_NAMES, "measure")


@dataclass(frozen=True)
class DatasetSpec:
    """A dataset that a study names.

    Attributes
    ----------
    name : str
        A name of the catalogue, or the path of a data file.
    apart : bool
        Listed in the tables, but left out of average ranks and tests.
    source : str
        The file to load it from; empty means that the name says it.
    """

    name: str
    apart: bool = False
    source: str = ""


@dataclass(frozen=True)
class Study:
    """A comparison of estimators, written down before it is run.

    Attributes
    ----------
    datasets : sequence of str, DatasetSpec or Problem
        What the contenders run on: names, paths or data.
    contenders : sequence of Contender
        What is compared. The mean baseline is added if it is not among them.
    name, title : str
        What the study is called, in one word and in one line.
    protocol : {"nested", "geng2016", "holdout"}
        How settings are chosen and tested, see `skldl.experiments.PROTOCOLS`.
    measures : sequence of str
        The measures of the tables.
    criterion : str
        The measure by which selection chooses.
    folds : int
        Number of folds, of which each is the test set once.
    inner_folds : int
        Number of folds of the selection inside a training part, under ``nested``; fewer if it has not as many rows.
    repeats : int
        How often all of it is done, each time with other folds.
    order : {"file", "shuffled", ""}
        Folds as contiguous chunks of the file or of a shuffled order. Empty means ``file`` for one repeat of
        ``geng2016``, where the published numbers have it so, and else ``shuffled``.
    seed : int
        Seed of folds and of estimators that draw random numbers.
    control : str
        The contender that the others are tested against; empty means the mean baseline.

    Examples
    --------
    >>> import numpy as np
    >>> from skldl.experiments import Contender, Problem, Study
    >>> problem = Problem("tiny", np.eye(6), [[0.5, 0.5], [0.2, 0.8]] * 3)
    >>> study = Study([problem], [Contender("Mean", "skldl:MeanDistribution")], folds=3)
    >>> study.protocol, study.order
    ('nested', 'shuffled')
    """

    datasets: Sequence[Any]
    contenders: Sequence[Contender]
    name: str = "study"
    title: str = ""
    protocol: str = "nested"
    measures: Sequence[str] = tuple(PAPER_MEASURES)
    criterion: str = "kullback_leibler"
    folds: int = 10
    inner_folds: int = 5
    repeats: int = 1
    order: str = ""
    seed: int = 0
    control: str = ""

    def __post_init__(self) -> None:
        if self.protocol not in PROTOCOL_NAMES:
            raise StudyError(f"protocol = {self.protocol!r} is not one of {', '.join(PROTOCOL_NAMES)}.")
        self._settle("datasets", tuple(DatasetSpec(d) if isinstance(d, str) else d for d in self.datasets))
        contenders = tuple(self.contenders)
        if not any(contender.class_name == BASELINE.class_name for contender in contenders):
            contenders = (*contenders, BASELINE)
        self._settle("contenders", contenders)
        self._settle("control", self.control or self.baseline)
        self._settle("measures", tuple(measure_name(name) for name in self.measures))
        self._settle("criterion", measure_name(self.criterion))
        order = self.order or ("file" if self.protocol == "geng2016" and self.repeats == 1 else "shuffled")
        self._settle("order", order)
        self._check()

    def _settle(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def _check(self) -> None:
        for what, things in (("dataset", self.datasets), ("contender", self.contenders)):
            if not things:
                raise StudyError(f"The study names no {what}.")
            names = [plain(thing.name) for thing in things]
            twice = next((thing.name for thing in things if names.count(plain(thing.name)) > 1), None)
            if twice is not None:
                raise StudyError(f"Two {what}s are called {twice}. Each needs a name of its own.")
        if not self.measures:
            raise StudyError("The study names no measure.")
        for name, least in (("folds", 2), ("inner_folds", 2), ("repeats", 1), ("seed", 0)):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise StudyError(f"{name} = {value!r} must be a whole number, at least {least}.")
        if self.protocol == "geng2016" and self.folds < 3:
            raise StudyError("geng2016 needs at least 3 folds: one to test, one to validate, the others to train.")
        if self.order not in ORDERS:
            raise StudyError(f"order = {self.order!r} is not one of {', '.join(ORDERS)}.")
        if self.order == "file" and self.repeats > 1:
            raise StudyError("Folds in file order are the same in every repeat. Use order = 'shuffled', or one repeat.")
        find(self.control, {contender.name: contender for contender in self.contenders}, "contender")

    @property
    def baseline(self) -> str:
        """Name of the mean baseline among the contenders."""
        return next(c.name for c in self.contenders if c.class_name == BASELINE.class_name)

    def with_options(self, **options: Any) -> "Study":
        """Copy the study with other fields; an order that followed from the protocol follows from the new one.

        Parameters
        ----------
        **options : dict
            Fields of the study; None leaves the field as it is.

        Returns
        -------
        Study
            The new study.
        """
        changes = {name: value for name, value in options.items() if value is not None}
        if "order" not in changes and {"protocol", "repeats"} & set(changes):
            changes["order"] = ""
        return replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """Describe the study in plain values, as its TOML file holds it."""
        told: dict[str, Any] = {}
        for entry in fields(self):
            value = getattr(self, entry.name)
            if entry.name not in ("datasets", "contenders"):
                told[entry.name] = list(value) if isinstance(value, tuple) else value
        told["datasets"] = [{"name": d.name, "apart": d.apart, "source": d.source} for d in self.datasets]
        told["contenders"] = [contender.to_dict() for contender in self.contenders]
        return told

    def fingerprint(self) -> str:
        """Hash everything that can change a number: two studies with the same fingerprint may share records."""
        told = self.to_dict() | {"title": ""}
        for dataset in told["datasets"]:
            del dataset["source"]  # a file may move; its content has a fingerprint of its own
        text = json.dumps(told, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]
