"""Fit one setting of a candidate: weights, groups, encoder and dense features as the estimator needs them."""

from collections.abc import Mapping
from inspect import signature
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from skldl.data._dataset import Dataset
from skldl.selection._candidate import Candidate
from skldl.utils.typing import IntArray

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
    """Fit one setting of a candidate to some rows of a dataset, or to all, with an encoder before it if given."""
    model = candidate.make(setting, random_state)
    if encoder is not None:
        model = with_encoder(model, encoder)
    part = dataset if rows is None else dataset.take(rows)
    return model.fit(part.X, part.target, **fit_arguments(model, part.sample_weight, part.groups))


def with_encoder(estimator: Any, encoder: Any) -> Pipeline:
    """Put an encoder before an estimator; the encoder makes dense features if the estimator needs them."""
    first = clone(encoder)
    if "dense" in first.get_params():
        first.set_params(dense=needs_dense(estimator))
    return Pipeline([("encoder", first), (MODEL_STEP, estimator)])


def needs_dense(estimator: Any) -> bool:
    """Whether an estimator takes no sparse matrix."""
    return not get_tags(estimator).input_tags.sparse


def fit_arguments(model: Any, weight: Any, groups: Any = None) -> dict[str, Any]:
    """The keywords by which an estimator, or the last step of a pipeline, takes weights and groups, if there are any.

    Every label distribution learner takes weights; groups are for those that hold rows out inside ``fit``. Under
    scikit-learn's metadata routing a pipeline takes them by their own names, and its steps must have requested them
    (``set_fit_request``).
    """
    steps = getattr(model, "steps", None)
    last, prefix = (steps[-1][1], f"{steps[-1][0]}__") if steps else (model, "")
    if get_config()["enable_metadata_routing"]:
        prefix = ""
    arguments = {} if weight is None else {f"{prefix}sample_weight": weight}
    if groups is not None and len(np.unique(groups)) > 1 and "groups" in signature(last.fit).parameters:
        arguments[f"{prefix}groups"] = groups
    return arguments
