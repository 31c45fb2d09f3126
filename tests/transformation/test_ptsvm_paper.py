"""PT-SVM on the data of the paper: better than the mean, and the same decision values as LIBSVM's."""

import numpy as np
import pytest
from sklearn.svm import SVC

from skldl import PTSVM, MeanDistribution
from skldl.metrics import PAPER_MEASURES, evaluate


@pytest.mark.parametrize(
    ("name", "parameters", "n_solved"),
    [("Yeast_alpha", {}, 2), ("Movie", {"max_samples": 1000}, 0), ("SJAFFE", {"C": 1000.0, "gamma": "scale"}, 15)],
)
def test_beats_or_meets_the_mean_on_the_papers_data(paper_data, name, parameters, n_solved):
    X, D = paper_data(name)
    test = np.array_split(np.arange(len(D)), 10)[0]
    train = np.delete(np.arange(len(D)), test)
    model = PTSVM(random_state=0, **parameters).fit(X[train], D[train])
    assert len(model.solved_pairs_) == n_solved
    mean = MeanDistribution().fit(X[train], D[train])
    assert model.score(X[test], D[test]) > 1.005 * mean.score(X[test], D[test])


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["alpha", "cdc", "cold", "diau", "dtt", "elu", "heat", "spo", "spo5", "spoem", "SBU_3DFE"],
)
def test_small_c_beats_the_mean_by_all_six_measures(paper_data, name):
    X, D = paper_data(name if name == "SBU_3DFE" else f"Yeast_{name}")
    ours, means = [], []
    for test in np.array_split(np.random.default_rng(0).permutation(len(D)), 10):
        train = np.setdiff1d(np.arange(len(D)), test)
        model = PTSVM(gamma="scale", C=1e-3).fit(X[train], D[train])
        assert not len(model.solved_pairs_)
        ours.append(evaluate(D[test], model.predict(X[test])))
        means.append(evaluate(D[test], MeanDistribution().fit(X[train], D[train]).predict(X[test])))
    for measure in PAPER_MEASURES.values():
        gain = np.mean([own[measure.name] - mean[measure.name] for own, mean in zip(ours, means, strict=True)])
        assert (gain > 0) == measure.higher_is_better, measure.name


@pytest.mark.slow
def test_all_rows_of_natural_scene_equal_libsvm(paper_data):
    """Decision values; ``benchmarks/speed.py --sections ptsvm_solver`` compares the times, too."""
    X, D = paper_data("Natural_Scene")
    model = PTSVM(C=1.0).fit(X, D)
    assert len(model.solved_pairs_) == 36
    examples, machines = model._examples, model._model
    found = examples.expansion(slice(None), machines.coefficients)(examples.rows) + machines.offset
    copies = np.vstack([examples.rows, examples.rows])
    for pair, (a, b) in enumerate(model.solved_pairs_):
        costs = np.concatenate([examples.weights[:, label] * machines.costs[label] for label in (a, b)])
        present = np.flatnonzero(costs)
        libsvm = SVC(gamma=model.gamma_, C=1.0, tol=1e-6)
        libsvm.fit(copies[present], np.where(present < len(X), 1, -1), sample_weight=costs[present])
        np.testing.assert_allclose(found[:, pair], libsvm.decision_function(examples.rows), atol=1e-4)
