"""`Study`: datasets, candidates, protocol and measures, and the fingerprint of all that can change a number."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from skldl.data._dataset import Dataset
from skldl.exceptions import Parameter, StudyError
from skldl.experiments.store import json_ready
from skldl.metrics import MEASURES, PAPER_MEASURES
from skldl.selection import BASELINE, PROTOCOLS, Candidate, Layout
from skldl.selection._candidate import shown
from skldl.utils.spelling import find, plain

ORDERS = ("file", "shuffled")
TEXT_NGRAMS = ("auto", "words", "characters")
MAX_FITS = 10_000_000  # a study of more is a mistake in its file: at 1 ms a fit it would take hours
MAX_NAME_LENGTH = 300

ROLES = ("labels", "features", "kind", "weight", "groups", "item", "annotator", "drop", "text", "categories")
"""Arguments of `skldl.data.load_dataset` for the roles of columns."""

READING = ("encoding", "decimal", "na_values")
"""Arguments of `skldl.data.TableFile`."""

COLUMNS = (*ROLES, *READING)

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
    if isinstance(word, str) and word in MEASURES:  # the usual case, which tables check for each cell
        return word
    return find(word, _MEASURE_NAMES, "measure")


@dataclass(frozen=True)
class DatasetSpec:
    """A dataset of a study: its file, and the roles of its columns.

    Attributes
    ----------
    name : str
        Name of the row in the tables; without ``source`` also a name of the catalogue, or the path of a data file.
    apart : bool
        Listed in the tables, but left out of average ranks and tests.
    source : str
        The file to load it from; empty if the name is that of a known dataset.
    labels, features : sequence of str or None
        The label columns, and the feature columns if they are not all others, see `skldl.data.load_dataset`, which
        takes these and the following arguments. For a ``.mat`` or ``.npz`` file the names of the arrays.
    kind : str
        What the label columns hold.
    weight, groups, item, annotator : str or None
        Columns (or arrays of a ``.mat`` or ``.npz`` file) with the weight and the group of each row; columns of a table
        with one row for each vote (``kind="votes"``) with the item and the annotator.
    drop, text, categories : sequence of str
        Columns to leave out, to take as prose, and to take as categories though they hold numbers.
    text_ngrams : {"auto", "words", "characters"}
        What prose is cut into, see `skldl.tabular.TableEncoder`.
    splits : str or None
        A table (CSV or Parquet) with one line for each row of the data, in their order: every column is one repeat, and
        its cells name the fold in which the row is tested. An empty cell, or ``train``, means that the row is never
        tested. It takes the place of ``folds``.
    encode : bool
        Read it as a table and put the table encoder before every candidate, which scales numbers, though all columns
        are numbers. A table with other columns always gets it.
    encoding, decimal, na_values
        How a CSV file is written, where this is not found out.
    recover : bool
        Test on the rows that the candidates learn from: the recovery experiment of label enhancement, for
        `skldl.enhancement.EnhancedLDL`, which sees logical labels alone.
    hide : float or sequence of float
        Fraction of the degrees that are hidden from the candidates, see `skldl.data.make_missing`; tests compare with
        all of them. Several fractions make several datasets, with the fraction in their names.
    mechanism : {"uniform", "degree", "label"}
        What is hidden.
    renormalise : bool
        Whether what is left is divided by its sum.
    data : Dataset or None
        The data, if they are loaded already.

    Examples
    --------
    >>> from skldl.experiments import DatasetSpec
    >>> DatasetSpec("moods", source="moods.csv", labels=("emo_*",)).to_dict()
    {'name': 'moods', 'apart': False, 'source': 'moods.csv', 'labels': ['emo_*']}
    """

    name: str
    apart: bool = False
    source: str = ""
    labels: tuple[str, ...] | None = None
    features: tuple[str, ...] | None = None
    kind: str = "distribution"
    weight: str | None = None
    groups: str | None = None
    item: str | None = None
    annotator: str | None = None
    drop: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    text_ngrams: str = "auto"
    splits: str | None = None
    encode: bool = False
    encoding: str | None = None
    decimal: str | None = None
    na_values: tuple[str, ...] | None = None
    recover: bool = False
    hide: float | tuple[float, ...] | None = None
    mechanism: str = "uniform"
    renormalise: bool = False
    data: Dataset | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        for key in ("labels", "features", "drop", "text", "categories", "na_values"):
            value = getattr(self, key)
            if value is not None:
                object.__setattr__(self, key, (value,) if isinstance(value, str) else tuple(value))
        if self.text_ngrams not in TEXT_NGRAMS:
            ngrams = Parameter("text_ngrams", self.text_ngrams)
            raise StudyError(f"{self.name}: ", ngrams, f" is not one of {', '.join(TEXT_NGRAMS)}.")

    @property
    def columns(self) -> dict[str, Any]:
        """The arguments of `load_dataset` for the roles of columns, as far as they are given."""
        return {key: getattr(self, key) for key in COLUMNS if getattr(self, key) != _DEFAULTS[key]}

    def to_dict(self) -> dict[str, Any]:
        """Describe the dataset in plain values, as a study file holds it.

        Returns
        -------
        dict
            The entries of a table in a study file.
        """
        entries: dict[str, Any] = {"name": self.name, "apart": self.apart, "source": self.source}
        entries |= {key: list(value) if isinstance(value, tuple) else value for key, value in self.columns.items()}
        for key in ("encode", "text_ngrams", "splits", "recover"):
            if getattr(self, key) != _DEFAULTS[key]:
                entries[key] = getattr(self, key)
        if self.hide is not None:
            entries |= {"hide": self.hide, "mechanism": self.mechanism, "renormalise": self.renormalise}
        return entries

    def at_each_rate(self) -> list["DatasetSpec"]:
        """One dataset for each fraction of hidden degrees.

        Returns
        -------
        list of DatasetSpec
            Copies with one rate each.
        """
        if not isinstance(self.hide, list | tuple):
            return [self]
        source = self.source or ("" if self.data is not None else self.name)
        return [
            replace(self, name=f"{self.name}, {100 * rate:g} % hidden", source=source, hide=rate) for rate in self.hide
        ]


_DEFAULTS = {entry.name: entry.default for entry in fields(DatasetSpec)}


def _spec(dataset: Any) -> DatasetSpec:
    if isinstance(dataset, DatasetSpec):
        return dataset
    if isinstance(dataset, Dataset):
        return DatasetSpec(dataset.name, dataset.apart, dataset.source, data=dataset)
    return DatasetSpec(str(dataset))


@dataclass(frozen=True)
class Study:
    """A comparison of estimators on datasets, defined before it is run.

    Attributes
    ----------
    datasets : sequence of str, DatasetSpec or Dataset
        What the candidates run on: names, paths or data. Kept as a tuple of DatasetSpec.
    candidates : sequence of Candidate
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
    random_state : int
        Seed of folds and of estimators that draw random numbers; ``seed`` in a study file.
    control : str
        The candidate that the others are tested against; empty means the mean baseline.
    timeout : float or None
        Seconds after which a task is ended and recorded as failed; None means no limit. It needs separate processes
        for the tasks, so that ``run_study`` starts at least one.

    Examples
    --------
    >>> import numpy as np
    >>> from skldl.data import Dataset
    >>> from skldl.experiments import Candidate, Study
    >>> dataset = Dataset("tiny", np.eye(6), [[0.5, 0.5], [0.2, 0.8]] * 3)
    >>> study = Study([dataset], [Candidate("Mean", "skldl:MeanDistribution")], folds=3)
    >>> study.protocol, study.order
    ('nested', 'shuffled')
    """

    datasets: Sequence[Any]
    candidates: Sequence[Candidate] = ()
    name: str = "study"
    title: str = ""
    protocol: str = "nested"
    measures: Sequence[str] = tuple(PAPER_MEASURES)
    criterion: str = "kullback_leibler"
    folds: int = 10
    inner_folds: int = 5
    repeats: int = 1
    order: str = ""
    random_state: int = 0
    control: str = ""
    timeout: float | None = None

    def __post_init__(self) -> None:
        if self.protocol not in PROTOCOLS:
            raise StudyError(Parameter("protocol", self.protocol), f" is not one of {', '.join(PROTOCOLS)}.")
        specs = (_spec(dataset) for dataset in self.datasets)
        self._set("datasets", tuple(one for spec in specs for one in spec.at_each_rate()))
        candidates = tuple(self.candidates)
        if not any(candidate.is_baseline for candidate in candidates):
            candidates = (*candidates, BASELINE)
        self._set("candidates", candidates)
        self._set("control", self.control or self.baseline)
        self._set("measures", tuple(measure_name(name) for name in self.measures))
        self._set("criterion", measure_name(self.criterion))
        order = self.order or ("file" if self.protocol == "geng2016" and self.repeats == 1 else "shuffled")
        self._set("order", order)
        self._check()

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def _check(self) -> None:
        for what, things in (("dataset", self.datasets), ("candidate", self.candidates)):
            if not things:
                raise StudyError(f"The study names no {what}.")
            if long := next((thing.name for thing in things if len(thing.name) > MAX_NAME_LENGTH), None):
                raise StudyError(
                    f"The name of a {what}, {shown(long)}, has {len(long)} characters; at most {MAX_NAME_LENGTH} are "
                    "allowed."
                )
            names = [plain(thing.name) for thing in things]
            twice = next((thing.name for thing in things if names.count(plain(thing.name)) > 1), None)
            if twice is not None:
                raise StudyError(f"Two {what}s are called {twice}. Each needs a unique name.")
        if not self.measures:
            raise StudyError("The study names no measure.")
        for name, minimum in (("folds", 2), ("inner_folds", 2), ("repeats", 1), ("random_state", 0)):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < minimum:
                raise StudyError(Parameter(name, value), f" must be an integer, at least {minimum}.")
        seconds = self.timeout
        if seconds is not None and (
            not isinstance(seconds, int | float) or isinstance(seconds, bool) or not seconds > 0
        ):
            raise StudyError(Parameter("timeout", seconds), " must be a number of seconds above 0.")
        if self.protocol == "geng2016" and self.folds < 3:
            raise StudyError("geng2016 needs at least 3 folds: one to test, one to validate, the others to train.")
        if self.order not in ORDERS:
            raise StudyError(Parameter("order", self.order), f" is not one of {', '.join(ORDERS)}.")
        if self.order == "file" and self.repeats > 1:
            raise StudyError(
                "Folds in file order are the same in every repeat. Use ",
                Parameter("order", "shuffled"),
                ", or one repeat.",
            )
        if PROTOCOLS[self.protocol].shares_choice and (refined := [c.name for c in self.candidates if c.refine]):
            raise StudyError(
                f"{refined[0]} refines its grid around the best value, which {self.protocol} cannot: there one setting "
                "is chosen over all rotations. Write the values out, or use ",
                Parameter("protocol", "nested"),
                ".",
            )
        find(self.control, {candidate.name: candidate for candidate in self.candidates}, "candidate")
        if self.n_fits > MAX_FITS:
            raise StudyError(
                f"The study would fit {self.n_fits:,} models; at most {MAX_FITS:,} are allowed. Use fewer folds, "
                "repeats or values in the grids."
            )

    @property
    def n_fits(self) -> int:
        """Number of models that the study fits at most; values along a path count one each."""
        rounds = self.repeats * (1 if self.protocol == "holdout" else self.folds)
        trials = self.inner_folds if self.protocol == "nested" else 1
        used = [candidate.on(dataset.name) for dataset in self.datasets for candidate in self.candidates]
        return sum(rounds * (1 + (one.n_settings * trials if one.needs_selection else 0)) for one in used)

    @property
    def layout(self) -> Layout:
        """The settings of its protocol."""
        return Layout(self.protocol, self.folds, self.inner_folds, self.order, self.random_state)

    @property
    def baseline(self) -> str:
        """Name of the mean baseline among the candidates."""
        return next(candidate.name for candidate in self.candidates if candidate.is_baseline)

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
        """Describe the study in plain values, as its TOML file holds it.

        Returns
        -------
        dict
            The content of a study file.
        """
        entries: dict[str, Any] = {}
        for entry in fields(self):
            value = getattr(self, entry.name)
            if entry.name not in ("datasets", "candidates") and value is not None:
                key = "seed" if entry.name == "random_state" else entry.name
                entries[key] = list(value) if isinstance(value, tuple) else value
        entries["datasets"] = [dataset.to_dict() for dataset in self.datasets]
        entries["candidates"] = [candidate.to_dict() for candidate in self.candidates]
        return entries

    def fingerprint(self) -> str:
        """Hash everything that can change a number: two studies with the same fingerprint may share records.

        Returns
        -------
        str
            16 hexadecimal digits.
        """
        return fingerprint_of(self.to_dict())


def fingerprint_of(entries: Mapping[str, Any]) -> str:
    """Hash the dictionary of a study, from `Study.to_dict` or the header of a record file, to 16 hexadecimal digits.

    The candidates are hashed under the name ``contenders``, which recorded fingerprints contain.
    """
    hashed = {key: value for key, value in entries.items() if key not in ("candidates", "timeout")} | {"title": ""}
    # A file may be moved. Columns act through the data, which have their own fingerprint.
    hashed["datasets"] = _without(entries["datasets"], {"source", "splits", *COLUMNS} - {"text", "categories"})
    hashed["contenders"] = _without(entries["candidates"], {"natural"})
    return hashlib.sha256(json.dumps(json_ready(hashed), sort_keys=True).encode()).hexdigest()[:16]


def _without(entries: Iterable[Mapping[str, Any]], keys: set[str]) -> list[dict[str, Any]]:
    return [{key: value for key, value in entry.items() if key not in keys} for entry in entries]
