"""The models that a table can be given to: by name in any spelling, with parameters as typed, inside a pipeline."""

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from skldl.base import BaseLDL
from skldl.exceptions import StudyError, TableError, UnknownNameError
from skldl.experiments import Candidate
from skldl.experiments.study import BASELINE
from skldl.experiments.study_file import find_candidate
from skldl.tabular._encoder import TableEncoder

MODEL_STEP = "model"

AUTO = (
    BASELINE,
    Candidate(
        "SA-BFGS", "skldl:SABFGS", {"fit_intercept": True}, {"alpha": (0.3, 0.1, 0.03, 0.01, 1e-3, 1e-4, 1e-5)}, "alpha"
    ),
    Candidate("AA-kNN", "skldl:AAKNN", {}, {"n_neighbors": (80, 50, 30, 20, 10, 5)}, "n_neighbors"),
    Candidate(
        "Forest",
        "skldl:AARegressor",
        {"regressor": {"estimator": "sklearn.ensemble:RandomForestRegressor", "max_features": 0.5}},
        {"regressor__min_samples_leaf": (20, 5)},
    ),
)
"""What ``--model auto`` chooses from, and what ``skldl evaluate`` compares unless told otherwise.

In a tie the earlier and simpler wins. A linear model, neighbours and trees: they differ in what they can see, and all
end in reasonable time.
"""

NAMED = (
    *AUTO,
    Candidate("PT-Bayes", "skldl:PTBayes", {"covariance": "tied"}, {"reg": (1.0, 0.1, 0.01)}),
    Candidate("SABFGSCV", "skldl:SABFGSCV"),
)


def find_model(word: str) -> Candidate:
    """Find a model by name.

    Parameters
    ----------
    word : str
        Such as ``sa-bfgs``, ``SABFGS`` or ``forest``, or an import path ``package.module:Class``.

    Returns
    -------
    Candidate
        The estimator and the settings to choose from.

    Examples
    --------
    >>> from skldl.tabular import find_model
    >>> find_model("sabfgs").name
    'SA-BFGS'
    """
    try:
        return find_candidate(word, NAMED)
    except UnknownNameError as error:
        raise UnknownNameError(f"{error} Or give an import path, package.module:Class, or auto.") from None


def with_settings(candidate: Candidate, settings: Iterable[str]) -> Candidate:
    """Fix parameters of a model as they are typed; what is fixed is no longer chosen.

    Parameters
    ----------
    candidate : Candidate
        The model.
    settings : iterable of str
        Such as ``alpha=0.1``.

    Returns
    -------
    Candidate
        The model with these parameters.

    Examples
    --------
    >>> from skldl.tabular import find_model
    >>> with_settings(find_model("aa-knn"), ["n_neighbors=7"]).make()
    AAKNN(n_neighbors=7)
    """
    model = _built(candidate)
    values = {}
    for setting in settings:
        name, sign, text = (part.strip() for part in setting.partition("="))
        if not (name and sign and text):
            raise TableError(f"--set {setting}: write it as name=value, such as alpha=0.1.")
        if name not in model.get_params():
            raise UnknownNameError(
                f"--set {setting}: {candidate.name} has no parameter {name!r}. It has {', '.join(model.get_params())}."
            )
        values[name] = _value(text)
    if not values:
        return candidate
    grid = {name: tried for name, tried in candidate.grid.items() if name not in values}
    return Candidate(
        candidate.name, model.set_params(**values), grid=grid, path=candidate.path if candidate.path in grid else ""
    )


def _built(candidate: Candidate) -> Any:
    try:
        model = candidate.make()
    except TypeError as error:  # a class that needs arguments, such as the estimator to wrap
        raise StudyError(f"{candidate.name} cannot be built from its name alone: {error}.") from error
    if not isinstance(model, BaseLDL):
        raise StudyError(
            f"{candidate.name} is no label distribution learner. Derive it from skldl.BaseLDL; in Python, AARegressor "
            "and PTClassifier make one of any regressor or classifier."
        )
    return model


def _value(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text  # a word, such as tied


def limited_to(candidate: Candidate, n_train: int) -> Candidate:
    """Leave out numbers of neighbours that are more than the rows to learn from."""
    values = candidate.grid.get("n_neighbors")
    if values is None:
        return candidate
    possible = tuple(value for value in values if value <= n_train) or (max(1, n_train),)
    return replace(candidate, grid={**candidate.grid, "n_neighbors": possible})


def table_pipeline(estimator: Any, encoder: TableEncoder) -> Pipeline:
    """Put an encoder before an estimator; the encoder makes dense features if the estimator needs them.

    Parameters
    ----------
    estimator : estimator
        A label distribution learner.
    encoder : TableEncoder
        The encoder.

    Returns
    -------
    Pipeline
        Both, unfitted.
    """
    return Pipeline([("encoder", clone(encoder).set_params(dense=needs_dense(estimator))), (MODEL_STEP, estimator)])


def needs_dense(estimator: Any) -> bool:
    """Whether an estimator takes no sparse matrix."""
    return not get_tags(estimator).input_tags.sparse


class PathPipeline(Pipeline):
    """An encoder and a model, encoding once for all values of one hyper-parameter of the model."""

    def predict_path(
        self, X: Any, y: Any, X_new: Any, *, param: str, values: Sequence[Any], sample_weight: Any = None
    ) -> Iterator[Any]:
        """See `skldl.BaseLDL.predict_path`; the name of the hyper-parameter begins with that of the step."""
        encoder, model = clone(self[0]), self[-1]
        features = encoder.fit_transform(X)
        return model.predict_path(
            features,
            y,
            encoder.transform(X_new),
            param=param.removeprefix(f"{MODEL_STEP}__"),
            values=values,
            sample_weight=sample_weight,
        )


def in_pipeline(candidate: Candidate, encoder: TableEncoder, n_train: int) -> Candidate:
    """The same candidate with the encoder before it, so that each fold learns its own encoding.

    Parameters
    ----------
    candidate : Candidate
        A model for numbers.
    encoder : TableEncoder
        The encoder.
    n_train : int
        Least number of rows that it will learn from.

    Returns
    -------
    Candidate
        A model for tables.
    """
    candidate = limited_to(candidate, n_train)
    pipeline = PathPipeline(table_pipeline(_built(candidate), encoder).steps)
    grid = {f"{MODEL_STEP}__{name}": values for name, values in candidate.grid.items()}
    path = candidate.path or (next(iter(candidate.grid)) if len(candidate.grid) == 1 else "")
    return Candidate(candidate.name, pipeline, grid=grid, path=f"{MODEL_STEP}__{path}" if path else "")
