"""One setting of a candidate, fitted: weights, encoders and dense features as the estimator takes them."""

from collections.abc import Mapping
from inspect import signature
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from skldl._typing import IntArray
from skldl.data._dataset import Dataset
from skldl.selection._candidate import Candidate

MODEL_STEP = "model"


def fit_candidate(
    candidate: Candidate,
    setting: Mapping[str, Any],
    dataset: Dataset,
    rows: IntArray | None = None,
    *,
    random_state: int = 0,
    encoder: Any = None,
) -> Any:
    """Fit one setting of a candidate.

    Parameters
    ----------
    candidate : Candidate
        The candidate.
    setting : mapping
        Its hyper-parameters.
    dataset : Dataset
        The data.
    rows : ndarray of int, default=None
        Rows to learn from; None means all.
    random_state : int, default=0
        Seed of an estimator that draws random numbers.
    encoder : transformer, default=None
        Put before the estimator in a Pipeline.

    Returns
    -------
    estimator
        The fitted estimator or pipeline.
    """
    model = candidate.make(setting, random_state)
    if encoder is not None:
        model = with_encoder(model, encoder)
    part = dataset if rows is None else dataset.take(rows)
    return model.fit(part.X, part.target, **fit_arguments(model, part.sample_weight, part.groups))


def with_encoder(estimator: Any, encoder: Any) -> Pipeline:
    """Put an encoder before an estimator; the encoder makes dense features if the estimator needs them.

    Parameters
    ----------
    estimator : estimator
        The estimator.
    encoder : transformer
        The encoder.

    Returns
    -------
    Pipeline
        Both, unfitted.
    """
    first = clone(encoder)
    if "dense" in first.get_params():
        first.set_params(dense=needs_dense(estimator))
    return Pipeline([("encoder", first), (MODEL_STEP, estimator)])


def needs_dense(estimator: Any) -> bool:
    """Whether an estimator takes no sparse matrix."""
    return not get_tags(estimator).input_tags.sparse


def fit_arguments(model: Any, weight: Any, groups: Any = None) -> dict[str, Any]:
    """The keywords by which an estimator, or the last step of a pipeline, takes weights and groups.

    Parameters
    ----------
    model : estimator
        The estimator.
    weight : ndarray or None
        Weight of each row; every label distribution learner takes it.
    groups : ndarray or None, default=None
        Group of each row, given to estimators that hold rows out inside ``fit``.

    Returns
    -------
    dict
        Arguments of ``fit``; nothing for what there is not.
    """
    steps = getattr(model, "steps", None)
    last, prefix = (steps[-1][1], f"{steps[-1][0]}__") if steps else (model, "")
    arguments = {} if weight is None else {f"{prefix}sample_weight": weight}
    if groups is not None and len(np.unique(groups)) > 1 and "groups" in signature(last.fit).parameters:
        arguments[f"{prefix}groups"] = groups
    return arguments
