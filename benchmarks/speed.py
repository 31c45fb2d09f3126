"""Time of the algorithms beside their peers: one process, one core, the same fold, medians of repeated runs.

Runs in an environment that holds python-ldl, torch and scikit-ldl; `benchmarks/run.py` makes it. Each section writes
``results/<section>.json`` and its table.
"""

import argparse
import os
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
from _common import ALL_SETS, PAPER_SETS, SYNTHETIC, dense, divergence, first_fold, keep, load, timed
from scipy import linalg, sparse, special
from sklearn.feature_extraction.text import TfidfTransformer

from skldl import AABP, AAKNN, PTSVM, SABFGS, SAIIS, MeanDistribution, PTBayes


def cross_entropy(X: Any, D: np.ndarray, W: np.ndarray) -> float:
    """Mean cross-entropy of the maximum entropy model with weights W (features × labels)."""
    return float(-(D * special.log_softmax(X @ W, axis=1)).sum(axis=1).mean())


def sabfgs(names: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """SABFGS against three peers: the objective that each reaches, with its time."""
    for name in names:
        X, D, _, _ = first_fold(*load(name))
        ours, model = timed(lambda: SABFGS().fit(X, D))
        reached = cross_entropy(X, D, model.coef_.T)
        bare = bare_products(X, D, model.n_evaluations_)
        row = {
            "dataset": name,
            "ours s": ours,
            "evaluations": model.n_evaluations_,
            "ours / bare products": ours / bare if X.shape[0] * X.shape[1] * D.shape[1] > 1e7 else None,
            "objective": f"{reached:.9f}",
        }
        for peer, fit in (("python-ldl", python_ldl_bfgs), ("LogisticRegression", logistic), ("torch", torch_lbfgs)):
            seconds, W = timed(lambda: fit(X, D), repeats=3)
            row[f"{peer} / ours"] = seconds / ours
            last = cross_entropy(X, D, W)
            row[f"{peer} objective − ours"] = last - reached
            steps = steps_below(model.loss_curve_, last)
            if steps is not None:
                below, _ = timed(lambda: stopped_fit(X, D, steps), repeats=3)
                row[f"{peer} / ours to its objective"] = seconds / below
        yield row


def sparse_text(_: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """SABFGS on sparse text features beside LogisticRegression on copies, from 1,000 to 100,000 columns."""
    from sklearn.linear_model import LogisticRegression

    n_rows, n_labels = 6000, 3
    for n_columns in (1000, 2000, 3000, 4000, 5500, 10_000, 20_000, 50_000, 100_000):
        X, D = text_features(n_rows, n_columns, n_labels)
        ours, model = timed(lambda X=X, D=D: SABFGS(alpha=1 / n_rows, fit_intercept=True).fit(X, D))
        copies, y = sparse.vstack([X] * n_labels, format="csr"), np.repeat(np.arange(n_labels), n_rows)
        logistic = LogisticRegression(C=1, tol=1e-5, max_iter=1000)
        theirs, other = timed(lambda m=logistic, c=copies, y=y, D=D: m.fit(c, y, sample_weight=D.T.ravel()), repeats=3)
        tracemalloc.start()
        SABFGS(alpha=1 / n_rows, fit_intercept=True).fit(X, D)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        stored = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
        reached, of_other = (penalised(X, D, m.coef_.T, m.intercept_, 1 / n_rows) for m in (model, other))
        yield {
            "dataset": f"{n_columns:,} columns",
            "ours s": ours,
            "evaluations": model.n_evaluations_,
            "ours / LogisticRegression": ours / theirs,
            "LogisticRegression objective − ours": of_other - reached,
            "memory beyond X / coef_": (peak - stored) / model.coef_.nbytes,
        }


def text_features(n_rows: int, n_columns: int, n_labels: int) -> tuple[Any, np.ndarray]:
    """Rows of 15 words drawn by Zipf's law, weighted as TfidfVectorizer does, and ten votes from a softmax model."""
    generator = np.random.default_rng(0)
    frequency = 1 / np.arange(1, n_columns + 1)
    words = generator.choice(n_columns, size=15 * n_rows, p=frequency / frequency.sum())
    counts = sparse.csr_matrix((np.ones(len(words)), (np.repeat(np.arange(n_rows), 15), words)), (n_rows, n_columns))
    X = TfidfTransformer().fit_transform(counts)
    scores = X @ generator.normal(scale=2, size=(n_columns, n_labels))
    return X, np.array([generator.multinomial(10, p) for p in special.softmax(scores, axis=1)]) / 10


def penalised(X: Any, D: np.ndarray, W: np.ndarray, b: np.ndarray, alpha: float) -> float:
    """The objective of SABFGS with an intercept."""
    loss = -(D * special.log_softmax(X @ W + b, axis=1)).sum(axis=1).mean()
    return float(loss + alpha / 2 * (W**2).sum())


def steps_below(losses: Any, objective: float) -> int | None:
    """The first step from 1 on after which the loss is not above an objective; None if there is none."""
    reached = np.flatnonzero(np.asarray(losses)[1:] <= objective)
    return int(reached[0]) + 1 if len(reached) else None


def stopped_fit(X: Any, D: np.ndarray, steps: int) -> SABFGS:
    """SABFGS, ended after some steps."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return SABFGS(max_iter=steps).fit(X, D)


def bare_products(X: Any, D: np.ndarray, n_evaluations: int) -> float:
    """Time of one factorisation of the Gram matrix and the two matrix products of each evaluation."""
    W = np.zeros((X.shape[1], D.shape[1]))

    def run() -> None:
        gram = dense(X.T @ X)
        linalg.eigh(gram, driver="evd")
        for _ in range(n_evaluations):
            X @ W
            X.T @ D

    return timed(run, repeats=3)[0]


def python_ldl_bfgs(X: Any, D: np.ndarray) -> np.ndarray:
    from pyldl.algorithms import SA_BFGS

    return SA_BFGS(random_state=0).fit(dense(X), D).W


def logistic(X: Any, D: np.ndarray) -> np.ndarray:
    """scikit-learn on c weighted copies of each row; twenty iterations where the copies are millions."""
    from sklearn.linear_model import LogisticRegression

    n_labels = D.shape[1]
    copies = sparse.vstack([X] * n_labels, format="csr") if sparse.issparse(X) else np.tile(X, (n_labels, 1))
    y = np.repeat(np.arange(n_labels), len(D))
    model = LogisticRegression(C=np.inf, fit_intercept=False, max_iter=100 if len(y) < 1e6 else 20)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(copies, y, sample_weight=D.T.ravel())
    if n_labels == 2:
        return np.column_stack([-model.coef_[0] / 2, model.coef_[0] / 2])
    return model.coef_.T


def torch_lbfgs(X: Any, D: np.ndarray) -> np.ndarray:
    """A softmax layer in torch, double precision, with torch's L-BFGS."""
    import torch

    torch.set_num_threads(1)
    features, target = torch.from_numpy(dense(X).astype(np.float64)), torch.from_numpy(D)
    W = torch.zeros(X.shape[1], D.shape[1], dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS(
        [W], max_iter=500, tolerance_grad=1e-7, tolerance_change=1e-12, line_search_fn="strong_wolfe"
    )

    def closure() -> Any:
        optimiser.zero_grad()
        loss = -(target * torch.log_softmax(features @ W, dim=1)).sum(dim=1).mean()
        loss.backward()
        return loss

    optimiser.step(closure)
    return W.detach().numpy()


def saiis(names: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """SAIIS against python-ldl, per iteration."""
    from pyldl.algorithms import SA_IIS

    for name in names:
        X, D, _, _ = first_fold(*load(name))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            short, _ = timed(lambda: SAIIS(max_iter=5, tol=0).fit(X, D))
            long, _ = timed(lambda: SAIIS(max_iter=25, tol=0).fit(X, D))
        ours = (long - short) / 20
        row = {"dataset": name, "ours s per iteration": ours}
        X = dense(X)
        one, _ = timed(lambda: SA_IIS().fit(X, D, max_iterations=1), repeats=2)
        three, _ = timed(lambda: SA_IIS().fit(X, D, max_iterations=3), repeats=2)
        row["python-ldl s per iteration"] = (three - one) / 2
        row["python-ldl / ours"] = (three - one) / 2 / ours
        yield row


def aaknn(names: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """AAKNN's prediction against KNeighborsRegressor and python-ldl, for one k and for all k at once."""
    from pyldl.algorithms import AA_KNN
    from sklearn.neighbors import KNeighborsRegressor

    for name in names:
        X, D, X_new, D_new = first_fold(*load(name))
        ours_model = AAKNN(n_neighbors=5).fit(X, D)
        sklearn_model = KNeighborsRegressor(n_neighbors=5).fit(X, D)
        peer_model = AA_KNN(k=5).fit(dense(X), D)
        X_new_dense = dense(X_new)
        ours, P = timed(lambda: ours_model.predict(X_new), repeats=9)
        regressor, _ = timed(lambda: sklearn_model.predict(X_new), repeats=9)
        peer, P_peer = timed(lambda: peer_model.predict(X_new_dense), repeats=9)
        fifty = AAKNN(n_neighbors=50).fit(X, D)
        one_k, _ = timed(lambda: fifty.predict(X_new), repeats=9)
        every_k, _ = timed(lambda: fifty.predict_all(X_new, 50), repeats=9)
        row = {
            "dataset": name,
            "ours s": ours,
            "ours / KNeighborsRegressor": ours / regressor,
            "python-ldl / ours": peer / ours,
            "every k ≤ 50 / k = 50": every_k / one_k,
            "KL ours": divergence(D_new, P),
            "KL python-ldl": divergence(D_new, P_peer),
        }
        yield row


def ptbayes(names: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """PTBayes with each covariance against python-ldl's diagonal one."""
    from pyldl.algorithms import PT_Bayes

    candidates = {f"ours {kind}": partial(PTBayes, covariance=kind) for kind in ("diag", "full", "tied")}
    return fit_and_predict(names, candidates, lambda: PT_Bayes(random_state=0))


def aabp(names: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """AABP against python-ldl's AA_BP with its defaults."""
    from pyldl.algorithms import AA_BP

    return fit_and_predict(names, {"ours": lambda: AABP(random_state=0)}, lambda: AA_BP(random_state=0))


def ptsvm(names: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """PTSVM with its defaults, and with C = 1e-3 and gamma = "scale", against python-ldl's PT_SVM.

    Not on the synthetic set, where either would solve machines on millions of examples.
    """
    from pyldl.algorithms import PT_SVM

    wanted = tuple(name for name in names if name != SYNTHETIC)
    ours = {"ours": PTSVM, "ours C=1e-3 scale": partial(PTSVM, C=1e-3, gamma="scale")}
    return fit_and_predict(wanted, ours, lambda: PT_SVM(random_state=0))


def ptsvm_solver(names: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """PTSVM on all rows of Natural_Scene: pairs solved together against LIBSVM, pair by pair."""
    from skldl.transformation import _ptsvm

    for name in names:
        if name != "Natural_Scene":
            continue
        X, D, X_new, D_new = first_fold(*load(name))
        for C in (0.1, 1.0, 3.0):
            ours, model = timed(lambda C=C: PTSVM(C=C).fit(X, D), repeats=3)
            with patch.object(_ptsvm, "solve_machines", solve_by_libsvm):
                libsvm, other = timed(lambda C=C: PTSVM(C=C).fit(X, D), repeats=1)
            values, expected = (
                m._examples.expansion(slice(None), m._model.coefficients)(X_new) + m._model.offset[m._model.solved]
                for m in (model, other)
            )
            yield {
                "dataset": f"{name}, C = {C:g}",
                "pairs without closed form": len(model.solved_pairs_),
                "ours s": ours,
                "LIBSVM / ours": libsvm / ours,
                "largest difference of decision values": float(np.abs(values - expected).max()),
                "KL ours": divergence(D_new, model.predict(X_new)),
            }


def solve_by_libsvm(kernel: Any, first: Any, second: Any, start: Any, offset: Any) -> Any:
    """The same machines by LIBSVM, on the kernel of all rows twice: once for each label of the pair."""
    from sklearn.svm import SVC

    from skldl.transformation._svm_solver import Solutions

    n_samples = first.shape[1]
    copies = np.tile(kernel.matrix, (2, 2))
    gamma, offset = np.zeros(first.shape), np.zeros(len(first))
    for pair, costs in enumerate(np.hstack([first, second])):
        present = np.flatnonzero(costs)  # SVC counts its support vectors without the rows of weight zero
        sides = np.where(present < n_samples, 1, -1)
        machine = SVC(kernel="precomputed", C=1.0, tol=1e-6)  # its default, 1e-3, shows in the predictions
        machine.fit(copies[np.ix_(present, present)], sides, sample_weight=costs[present])
        np.add.at(gamma[pair], present[machine.support_] % n_samples, machine.dual_coef_[0])
        offset[pair] = machine.intercept_[0]
    return Solutions(gamma, offset, gamma @ kernel.matrix + offset[:, None], np.ones(len(gamma), dtype=bool))


def fit_and_predict(
    names: tuple[str, ...], ours: dict[str, Callable[[], Any]], peer: Callable[[], Any]
) -> Iterator[dict[str, Any]]:
    """Time of fit and prediction together, and the divergence on the test fold, for us, the peer and the mean."""
    for name in names:
        X, D, X_new, D_new = first_fold(*load(name))
        X_dense, X_new_dense = dense(X), dense(X_new)

        def run(make: Callable[[], Any], X: Any = X, D: np.ndarray = D, X_new: Any = X_new) -> np.ndarray:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return make().fit(X, D).predict(X_new)

        peer_seconds, P = timed(lambda: run(peer, X=X_dense, X_new=X_new_dense), repeats=3)
        row = {
            "dataset": name,
            "KL mean": divergence(D_new, MeanDistribution().fit(X, D).predict(X_new)),
            "python-ldl s": peer_seconds,
            "KL python-ldl": divergence(D_new, P),
        }
        for label, make in ours.items():
            seconds, P = timed(lambda: run(make), repeats=3)
            row[f"python-ldl / {label}"] = peer_seconds / seconds
            row[f"KL {label}"] = divergence(D_new, P)
            row[f"{label} is"] = " ".join(str(make()).split())
        yield row


SECTIONS = {
    "sabfgs": sabfgs,
    "sparse_text": sparse_text,
    "saiis": saiis,
    "aaknn": aaknn,
    "ptbayes": ptbayes,
    "aabp": aabp,
    "ptsvm": ptsvm,
    "ptsvm_solver": ptsvm_solver,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sections", default=",".join(SECTIONS))
    parser.add_argument("--datasets", default=",".join(ALL_SETS))
    arguments = parser.parse_args()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    names = tuple(arguments.datasets.split(","))
    if not os.environ.get("SKLDL_DATA"):
        print(f"SKLDL_DATA names no folder: leaving out {', '.join(PAPER_SETS)}")
        names = tuple(name for name in names if name not in PAPER_SETS)
    for section in arguments.sections.split(","):
        print(f"\n## {section}: {SECTIONS[section].__doc__}", flush=True)
        for row in SECTIONS[section](names):
            keep(section, row)


if __name__ == "__main__":
    main()
