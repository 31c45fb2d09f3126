"""A small study with estimators from outside the package: regressors of scikit-learn that predict means."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from skldl.data import Dataset
from skldl.experiments import Candidate, Study, StudyResults, run_study, statistics

KNN = Candidate("kNN", "sklearn.neighbors:KNeighborsRegressor", grid={"n_neighbors": (1, 3, 8)}, path="n_neighbors")
TREE = Candidate("Tree", "sklearn.tree:ExtraTreeRegressor", {"min_samples_leaf": 4}, {"max_depth": (2, 4)})
BROKEN = Candidate("Broken", "sklearn.neighbors:KNeighborsRegressor", {"n_neighbors": 1000})


@pytest.fixture(autouse=True)
def fewer_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """The Bayesian test draws in a loop of Python: fewer draws are enough to test with."""
    monkeypatch.setattr(statistics, "POSTERIOR_DRAWS", 300)


def make_problem(name: str, *, seed: int = 0, n: int = 36, labels: int = 3, **options: Any) -> Dataset:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    D = np.exp(X @ rng.normal(size=(3, labels)) + rng.normal(scale=0.3, size=(n, labels)))
    return Dataset(name, X, D / D.sum(axis=1, keepdims=True), **options)


def make_study(**options: Any) -> Study:
    reported: dict[str, Any] = {
        "datasets": [make_problem("one"), make_problem("two", seed=1, labels=4)],
        "candidates": [KNN, TREE],
        "folds": 3,
        "inner_folds": 2,
        "measures": ["clark", "cosine", "kullback_leibler"],
    }
    return Study(**reported | options)


@pytest.fixture(scope="session")
def problem() -> Callable[..., Dataset]:
    return make_problem


@pytest.fixture(scope="session")
def small_study() -> Callable[..., Study]:
    return make_study


@pytest.fixture(scope="session")
def candidates() -> dict[str, Candidate]:
    return {"knn": KNN, "tree": TREE, "broken": BROKEN}


@pytest.fixture(scope="session")
def results() -> StudyResults:
    return run_study(make_study())


@pytest.fixture(scope="session")
def failing_results() -> StudyResults:
    return run_study(make_study(candidates=[KNN, BROKEN]))


def fake_results(losses: np.ndarray, *, folds: int = 1, noise: float = 0.0, families: str = "") -> StudyResults:
    """Results with given means of two measures: Clark as given, cosine as 1 − given; no model is fitted.

    ``families`` has a letter for each dataset, the same where they share their features.
    """
    rng = np.random.default_rng(0)
    datasets = [f"set {i}" for i in range(losses.shape[0])]
    names = [f"algorithm {j}" for j in range(losses.shape[1] - 1)] + ["Mean"]
    study = {
        "name": "fake",
        "title": "",
        "protocol": "nested",
        "measures": ["clark", "cosine"],
        "criterion": "clark",
        "folds": folds,
        "inner_folds": 2,
        "repeats": 1,
        "order": "file",
        "seed": 0,
        "control": "Mean",
        "datasets": [{"name": name, "apart": False} for name in datasets],
        "candidates": [{"name": name, "estimator": "skldl:MeanDistribution"} for name in names[-1:]],
    }
    study["candidates"] = [{"name": name, "estimator": "some:Thing"} for name in names[:-1]] + study["candidates"]
    records: list[dict[str, Any]] = [{"kind": "header", "format": 2, "study": study, "missing": []}]
    for i, name in enumerate(datasets):
        info = {"n_test": 0, "apart": False, "family": families[i] if families else name, "near_zero_share": 0.0}
        info |= {"n_samples": 10, "n_features": 2, "n_labels": 3, "mean_entropy_share": 0.9, "fingerprint": str(i)}
        records.append({"kind": "dataset", "name": name, **info})
        for j, candidate in enumerate(names):
            for fold in range(folds):
                loss = float(losses[i, j] + noise * rng.normal())
                key = {"kind": "evaluation", "dataset": name, "candidate": candidate, "repeat": 0, "fold": fold}
                found = {"status": "ok", "measures": {"clark": loss, "cosine": 1 - loss}, "params": {}}
                times = {"fit_seconds": 0.1, "predict_seconds": 0.01, "selection_seconds": 0.0}
                records.append(key | found | times)
    return StudyResults(records)


@pytest.fixture(scope="session")
def fake() -> Callable[..., StudyResults]:
    return fake_results
