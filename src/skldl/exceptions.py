"""Errors and warnings, one class for each kind of fault; a message names the place, the value found and what to do.

All errors are subclasses of `ValueError`, so that code written for scikit-learn catches them. Predicting before fitting
raises scikit-learn's `NotFittedError`; an optimiser that stopped early warns with its `ConvergenceWarning`.

A message consists of text and of the parameters that it names. ``str(error)`` spells these as Python does
(``drop=['a']``); the command line and the service spell them as options (`WordedError.worded`). `Message` is the same
for notes and warnings.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from reprlib import Repr
from typing import Any, Self

_SHORT = Repr()
_SHORT.maxstring = _SHORT.maxother = 60
_NO_VALUE: Any = object()


@dataclass(frozen=True)
class Parameter:
    """A parameter that an error message names, with or without a value.

    Attributes
    ----------
    name : str
        Name of the parameter in Python.
    value : object
        Its value; see ``has_value``.

    Examples
    --------
    >>> print(Parameter("alpha", -1), Parameter("labels"))
    alpha=-1 labels=
    """

    name: str
    value: Any = _NO_VALUE

    @property
    def has_value(self) -> bool:
        """Whether a value is named."""
        return self.value is not _NO_VALUE

    def __str__(self) -> str:
        return f"{self.name}={_SHORT.repr(self.value) if self.has_value else ''}"

    def __reduce__(self) -> tuple[Any, ...]:  # the marker for "no value" must stay the same object in another process
        return Parameter, ((self.name, self.value) if self.has_value else (self.name,))


class Message(str):
    """Text that names parameters, such as a note: a ``str`` whose parameters can be spelled in another way.

    Parameters
    ----------
    *parts : str or Parameter
        The text, in order; a `Message` among them keeps its own parameters.

    Examples
    --------
    >>> note = Message("To leave it out, set ", Parameter("drop", ["b"]), ".")
    >>> note
    "To leave it out, set drop=['b']."
    >>> Message("Note: ", note).worded(lambda parameter: f"--{parameter.name}")
    'Note: To leave it out, set --drop.'
    """

    parts: tuple[str | Parameter, ...]

    def __new__(cls, *parts: str | Parameter) -> Self:
        text = super().__new__(cls, "".join(map(str, parts)))
        flat = [part.parts if isinstance(part, Message) else (part,) for part in parts]
        text.parts = tuple(itertools.chain.from_iterable(flat))
        return text

    def worded(self, spell: Callable[[Parameter], str]) -> str:
        """The text with its parameters spelled by a function, such as as options of the command line.

        Parameters
        ----------
        spell : callable
            From a `Parameter` to text.

        Returns
        -------
        str
            The text.
        """
        return "".join(spell(part) if isinstance(part, Parameter) else str(part) for part in self.parts)


class WordedError(ValueError):
    """An error whose message names parameters.

    Parameters
    ----------
    *parts : str or Parameter
        The message, in order.
    row : int, default=None
        Position of the row of the input that the error is about, where there is one.
    column : str, default=None
        Name of the column that the error is about, where there is one.

    Examples
    --------
    >>> error = WordedError("Leave column 'b' out with ", Parameter("drop", ["b"]), ".")
    >>> print(error)
    Leave column 'b' out with drop=['b'].
    >>> error.worded(lambda parameter: f"--{parameter.name} {','.join(parameter.value)}")
    "Leave column 'b' out with --drop b."
    >>> error.parameter
    'drop'
    """

    def __init__(self, *parts: str | Parameter, row: int | None = None, column: str | None = None) -> None:
        message = Message(*parts)
        self.parts, self.row, self.column = message.parts, row, column
        super().__init__(str(message))

    @property
    def parameter(self) -> str | None:
        """Name of the first parameter in the message."""
        return next((part.name for part in self.parts if isinstance(part, Parameter)), None)

    def prefixed(self, text: str) -> Self:
        """The same error with text in front of its message, such as the place of a chunk.

        Parameters
        ----------
        text : str
            The text, with its final space.

        Returns
        -------
        error
            An error of the same class, with the same parameters, row and column.
        """
        return type(self)(text, *self.parts, row=self.row, column=self.column)

    def worded(self, spell: Callable[[Parameter], str]) -> str:
        """The message with its parameters spelled by a function, such as as options of the command line.

        Parameters
        ----------
        spell : callable
            From a `Parameter` to text.

        Returns
        -------
        str
            The message.
        """
        return Message(*self.parts).worded(spell)


class DataError(WordedError):
    """Base class of errors about data that cannot be used as they are.

    Examples
    --------
    >>> assert issubclass(RowSumError, DataError) and issubclass(DataError, ValueError)
    """


class NonFiniteError(DataError):
    """NaN or infinity in place of a number. To fix it, impute or remove these cells.

    Examples
    --------
    >>> from skldl.simplex import normalize
    >>> normalize([[1.0, float("nan")]])
    Traceback (most recent call last):
    ...
    skldl.exceptions.NonFiniteError: rows holds nan in cell (0, 1), where a finite number belongs...
    """


class NotNumericError(DataError, TypeError):
    """Text or other objects in place of numbers. To fix it, encode the column or leave it out.

    Examples
    --------
    >>> from skldl.simplex import normalize
    >>> normalize([["a", "b"]])
    Traceback (most recent call last):
    ...
    skldl.exceptions.NotNumericError: rows must hold real numbers (could not convert string to float:...
    """


class NegativeDegreeError(DataError):
    """A description degree below zero. To fix it, use `skldl.simplex.project` or correct the data.

    Examples
    --------
    >>> from skldl.metrics import kullback_leibler
    >>> kullback_leibler([[-0.5, 1.5]], [[0.5, 0.5]])
    Traceback (most recent call last):
    ...
    skldl.exceptions.NegativeDegreeError: Row 0 of D_true holds the negative degree -0.5 (label 0)...
    """


class RowSumError(DataError):
    """A row of degrees that does not sum to one. To fix it, use a converter of `skldl.distributions`.

    Examples
    --------
    >>> from skldl.metrics import kullback_leibler
    >>> kullback_leibler([[3, 1]], [[0.5, 0.5]])
    Traceback (most recent call last):
    ...
    skldl.exceptions.RowSumError: Row 0 of D_true sums to 4, not 1...
    """


class ZeroRowError(DataError):
    """A row without any mass, which cannot be normalised. To fix it, remove or smooth it.

    Examples
    --------
    >>> from skldl.simplex import normalize
    >>> normalize([[0, 0]])
    Traceback (most recent call last):
    ...
    skldl.exceptions.ZeroRowError: Row 0 is all zero and cannot be normalised...
    """


class DimensionError(DataError):
    """An array with the wrong number of dimensions. To fix it, pass one row per instance and one column per label.

    Examples
    --------
    >>> from skldl.metrics import kullback_leibler
    >>> kullback_leibler([0.5, 0.5], [0.5, 0.5])
    Traceback (most recent call last):
    ...
    skldl.exceptions.DimensionError: D_true has 1 dimension (shape (2,)), but needs two:...
    """


class LengthMismatchError(DataError):
    """Two tables that belong together have different numbers of rows or columns.

    Examples
    --------
    >>> from skldl.metrics import kullback_leibler
    >>> kullback_leibler([[0.5, 0.5]], [[0.2, 0.3, 0.5]])
    Traceback (most recent call last):
    ...
    skldl.exceptions.LengthMismatchError: D_true has shape (1, 2)...
    """


class EmptyDataError(DataError):
    """A table without rows or without columns.

    Examples
    --------
    >>> from skldl.metrics import kullback_leibler
    >>> kullback_leibler([[], []], [[], []])
    Traceback (most recent call last):
    ...
    skldl.exceptions.EmptyDataError: D_true is empty...
    """


class SingleLabelError(DataError):
    """Fewer than two labels: there is nothing to distribute.

    Examples
    --------
    >>> from skldl import SABFGS
    >>> SABFGS().fit([[0.5], [0.2]], [[1.0], [1.0]])
    Traceback (most recent call last):
    ...
    skldl.exceptions.SingleLabelError: y has 1 label (shape (2, 1))...
    """


class SparseDistributionError(DataError):
    """A sparse matrix of distributions. To fix it, pass ``D.toarray()``.

    Examples
    --------
    >>> from scipy.sparse import eye_array
    >>> from skldl import SABFGS
    >>> SABFGS().fit([[0.5], [0.2]], eye_array(2))
    Traceback (most recent call last):
    ...
    skldl.exceptions.SparseDistributionError: y is a sparse matrix...
    """


class DuplicateLabelError(DataError):
    """Two labels have the same name. To fix it, rename or merge them.

    Examples
    --------
    >>> import pandas as pd
    >>> from skldl import SABFGS
    >>> SABFGS().fit([[0.5], [0.2]], pd.DataFrame([[0.5, 0.5]] * 2, columns=["a", "a"]))
    Traceback (most recent call last):
    ...
    skldl.exceptions.DuplicateLabelError: The label name 'a' is used for columns 0 and 1...
    """


class SampleWeightError(DataError):
    """Weights that are negative, all zero, or of the wrong length.

    Examples
    --------
    >>> from skldl import SABFGS
    >>> SABFGS().fit([[0.5], [0.2]], [[0.1, 0.9], [0.4, 0.6]], sample_weight=[1, -1])
    Traceback (most recent call last):
    ...
    skldl.exceptions.SampleWeightError: sample_weight of row 1 is -1...
    """


class FeatureMismatchError(DataError):
    """Features differ in number, name or order from those seen by ``fit``.

    Examples
    --------
    >>> from skldl import SABFGS
    >>> model = SABFGS(fit_intercept=True).fit([[0.5, 1.0], [0.2, 0.3]], [[0.1, 0.9], [0.4, 0.6]])
    >>> model.predict([[0.5, 1.0, 2.0]])
    Traceback (most recent call last):
    ...
    skldl.exceptions.FeatureMismatchError: X has 3 features, but SABFGS is expecting 2 features as input...
    """


class LabelMismatchError(DataError):
    """Two tables of distributions have columns with different names. To fix it, use the same labels in both.

    Examples
    --------
    >>> import pandas as pd
    >>> from skldl.metrics import kullback_leibler
    >>> kullback_leibler(pd.DataFrame({"a": [0.5], "b": [0.5]}), pd.DataFrame({"a": [0.5], "c": [0.5]}))
    Traceback (most recent call last):
    ...
    skldl.exceptions.LabelMismatchError: There should be a label 'b', but D_pred has no such column...
    """


class DeviceError(DataError):
    """Arrays on several devices, or on one where nothing is computed. To fix it, move them to one, or to the CPU.

    Examples
    --------
    >>> import array_api_strict
    >>> from skldl import MeanDistribution
    >>> MeanDistribution().fit(array_api_strict.ones((2, 1), device=array_api_strict.Device("device1")), [[1.0], [1.0]])
    Traceback (most recent call last):
    ...
    skldl.exceptions.DeviceError: X is on the device ...device1... To compute there, call sklearn.set_config...
    """


class UnknownLabelError(DataError):
    """A label that is not among the known ones. To fix it, name it in ``classes`` or ``labels``.

    Examples
    --------
    >>> from skldl.distributions import from_labels
    >>> from_labels(["a", "c"], classes=["a", "b"])
    Traceback (most recent call last):
    ...
    skldl.exceptions.UnknownLabelError: Row 1 of y holds the label 'c', which is not among classes ('a', 'b')...
    """


class MissingLabelError(DataError):
    """An empty cell in place of a label. To fix it, remove that row, or leave the whole answer out.

    Examples
    --------
    >>> from skldl.distributions import from_labels
    >>> from_labels(["a", None])
    Traceback (most recent call last):
    ...
    skldl.exceptions.MissingLabelError: Row 1 of y holds no label (None)...
    """


class DuplicateVoteError(DataError):
    """One annotator gave one label to one item twice. To fix it, remove the copy, or name two annotators.

    Examples
    --------
    >>> from skldl.distributions import from_votes
    >>> from_votes([[("a", "a"), "b"]])
    Traceback (most recent call last):
    ...
    skldl.exceptions.DuplicateVoteError: The answer of annotator 0 to item 0 holds the label 'a' twice...
    """


class RankingError(DataError):
    """A ranking that names a label twice or has a gap. To fix it, list each label at most once, best first.

    Examples
    --------
    >>> from skldl.distributions import from_rankings
    >>> from_rankings([[["a", "b", "a"]]])
    Traceback (most recent call last):
    ...
    skldl.exceptions.RankingError: Ranking 0 of item 0 names the label 'a' twice...
    """


class UnknownNameError(DataError):
    """A measure, dataset or other object that is not known by this name.

    Examples
    --------
    >>> from skldl.metrics import evaluate
    >>> evaluate([[0.5, 0.5]], [[0.5, 0.5]], measures=["klark"])
    Traceback (most recent call last):
    ...
    skldl.exceptions.UnknownNameError: No measure is called 'klark'...
    """


class DatasetError(DataError):
    """A data file that cannot be read as label distribution data, or whose checksum is wrong.

    Examples
    --------
    >>> import skldl
    >>> skldl.data.load_dataset(skldl.__file__)
    Traceback (most recent call last):
    ...
    skldl.exceptions.DatasetError: ...
    """


class TableError(DataError):
    """A CSV or Parquet file that cannot be read as a table, or lacks a column.

    Examples
    --------
    >>> import pandas as pd
    >>> from skldl.data import Columns, from_table
    >>> from_table(pd.DataFrame({"x": [1, 2], "a": [0.5, 1], "b": [0.5, 0]}), Columns(labels=["a", "c"]))
    Traceback (most recent call last):
    ...
    skldl.exceptions.TableError: labels='c':...
    """


class ModelFileError(DataError):
    """A model file that is damaged, from a newer version, or holds a type that is not trusted.

    Examples
    --------
    >>> import skldl
    >>> skldl.load(skldl.__file__)
    Traceback (most recent call last):
    ...
    skldl.exceptions.ModelFileError: ...
    """


class DatasetNotFoundError(DatasetError, FileNotFoundError):
    """A dataset that is neither in the named folder nor in the cache. To fix it, fetch it or name its folder.

    Examples
    --------
    >>> from skldl.data import load_dataset
    >>> load_dataset("missing.csv")
    Traceback (most recent call last):
    ...
    skldl.exceptions.DatasetNotFoundError: There is no file missing.csv...
    """


class StudyError(DataError):
    """A study that cannot be run as it is written. To fix it, correct the study file or the option named.

    Examples
    --------
    >>> from skldl.experiments import Study
    >>> Study(["Lexicon"], [], folds=1)
    Traceback (most recent call last):
    ...
    skldl.exceptions.StudyError: folds=1 must be an integer, at least 2.
    """


class RecordsError(StudyError):
    """A record file that is damaged, or belongs to another study or another version. To fix it, use another folder.

    Examples
    --------
    >>> from skldl.experiments import StudyResults
    >>> StudyResults([])
    Traceback (most recent call last):
    ...
    skldl.exceptions.RecordsError: The record file is empty:...
    """


class UnknownDatasetError(UnknownNameError, DatasetNotFoundError):
    """A name that is neither in the catalogue of datasets nor a file. To fix it, use one of the names listed.

    Examples
    --------
    >>> from skldl.data import load_dataset
    >>> load_dataset("Yeast_alfa")
    Traceback (most recent call last):
    ...
    skldl.exceptions.UnknownDatasetError: 'Yeast_alfa' is neither a known dataset nor a file...
    """


class ParameterError(WordedError, TypeError):
    """A hyper-parameter with an invalid value. To fix it, use a value that the message describes.

    Examples
    --------
    >>> from skldl import SABFGS
    >>> SABFGS(alpha=-1).fit([[0.5], [0.2]], [[0.1, 0.9], [0.4, 0.6]])
    Traceback (most recent call last):
    ...
    skldl.exceptions.ParameterError: alpha=-1 must be a finite number of at least 0...
    """


class MissingDegreesWarning(UserWarning):
    """What missing degrees are taken for, and how many rows have no information. To choose, set ``missing=``.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from skldl import SABFGS
    >>> D = np.array([[0.2, 0.8, np.nan], [0.5, 0.3, 0.2], [0.1, 0.6, 0.3]])
    >>> with warnings.catch_warnings(record=True, action="always") as caught:
    ...     model = SABFGS(alpha=1).fit(np.eye(3), D)
    >>> [warning.category.__name__ for warning in caught]
    ['MissingDegreesWarning']
    """
