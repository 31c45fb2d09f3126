"""What can go wrong with data, one class each; every message names the place, the value and the cure.

All are subclasses of `ValueError`, so that code written for scikit-learn catches them. Predicting before
fitting raises scikit-learn's `NotFittedError`; an optimiser that stopped early warns with scikit-learn's
`ConvergenceWarning`.
"""


class DataError(ValueError):
    """Base class: the data handed in cannot be used as they are."""


class NonFiniteError(DataError):
    """NaN or infinity where a number belongs. Cure: impute or drop these cells."""


class NotNumericError(DataError, TypeError):
    """Text or other objects where numbers belong. Cure: encode the column or leave it out."""


class NegativeDegreeError(DataError):
    """A description degree below zero. Cure: `skldl.simplex.project`, or mend the data."""


class RowSumError(DataError):
    """A row of degrees that does not sum to one. Cure: a converter of `skldl.distributions`."""


class ZeroRowError(DataError):
    """A row without any mass, which no division can normalise. Cure: drop it or smooth it."""


class DimensionError(DataError):
    """An array with the wrong number of dimensions. Cure: one row per instance, one column per label."""


class LengthMismatchError(DataError):
    """Two tables that belong together have different numbers of rows or columns."""


class EmptyDataError(DataError):
    """A table without rows or without columns."""


class SingleLabelError(DataError):
    """Fewer than two labels: there is nothing to distribute."""


class SparseDistributionError(DataError):
    """A sparse matrix of distributions. Cure: `D.toarray()`."""


class DuplicateLabelError(DataError):
    """Two labels carry one name. Cure: rename or merge them."""


class SampleWeightError(DataError):
    """Weights that are negative, all zero, or of the wrong length."""


class FeatureMismatchError(DataError):
    """Features differ in number, name or order from those seen by `fit`."""


class LabelMismatchError(DataError):
    """Two tables of distributions whose columns carry different names. Cure: the same labels in both."""


class DeviceError(DataError):
    """Arrays on different devices, of different libraries, or of a precision that is not computed with."""


class UnknownLabelError(DataError):
    """A label that is not among the known ones. Cure: name it in `classes` or `labels`."""


class MissingLabelError(DataError):
    """An empty cell where a label belongs. Cure: drop that row, or leave the whole answer out."""


class DuplicateVoteError(DataError):
    """One annotator gave one label to one item twice. Cure: drop the copy, or name the two answers apart."""


class RankingError(DataError):
    """A ranking that names a label twice or has a gap in it. Cure: each label at most once, best first."""


class UnknownNameError(DataError):
    """A measure, dataset or other thing that is not known by this name."""


class DatasetError(DataError):
    """A data file that cannot be read as label distribution data, or whose checksum is wrong."""


class TableError(DataError):
    """A CSV or Parquet file that cannot be read as a table, or lacks a column."""


class ModelFileError(DataError):
    """A model file that is damaged, from a newer version, or holds a type that is not trusted."""


class DatasetNotFoundError(DatasetError, FileNotFoundError):
    """A dataset that is neither in the named folder nor in the cache. Cure: fetch it or say where it is."""


class StudyError(DataError):
    """A study that cannot be run as it is written. Cure: mend the study file or the option named."""


class RecordsError(StudyError):
    """A record file that is damaged, or belongs to another study or another version. Cure: another folder."""


class UnknownDatasetError(UnknownNameError, DatasetNotFoundError):
    """A name that is neither in the catalogue of datasets nor a file. Cure: one of the names that the message lists."""


class ParameterError(ValueError, TypeError):
    """A hyper-parameter that is not what it must be. Cure: a value that the message describes."""


class MissingDegreesWarning(UserWarning):
    """How missing degrees are read, and how many rows carry nothing. Cure: say ``missing=`` yourself."""
