"""GLLE with the label correlation term of its journal version: what the term would change in recovery.

    SKLDL_DATA=<folder of the data> python benchmarks/label_correlation.py [--datasets SJAFFE Yeast_cold]

Minimises ‖F − L‖² + .01 tr(Fᵀ G F) + beta Σ_i tr(F_i P_i F_iᵀ) over F and, for each of eight k-means clusters of rows,
over P_i = E_i E_iᵀ of unit diagonal: F by conjugate gradients, the rows of E_i one after the other (each has a closed
form), ten times in turn. It is compared with softmax(L / (1 + beta)), which uses no feature. Printed are the
Kullback-Leibler divergences of the true distributions, which were binarised at half of their mass, from the recovered.
"""

import argparse

import numpy as np
from scipy.sparse.linalg import LinearOperator, cg
from sklearn.cluster import KMeans
from sklearn.preprocessing import StandardScaler

from skldl.data import load_dataset
from skldl.distributions import to_label_sets
from skldl.enhancement._base import laplacian, mean_distance
from skldl.metrics import kullback_leibler
from skldl.simplex import softmax

ALPHA, CLUSTERS, ROUNDS, SWEEPS = 0.01, 8, 10, 200


def correlations(S: np.ndarray) -> np.ndarray:
    """P = E Eᵀ of unit diagonal with the least tr(P S): each row of E turns against the weighted sum of the others."""
    E = np.random.default_rng(0).normal(size=S.shape)
    E /= np.linalg.norm(E, axis=1, keepdims=True)
    for _ in range(SWEEPS):
        for row in range(len(S)):
            pull = S[row] @ E - S[row, row] * E[row]
            length = np.linalg.norm(pull)
            if length > 1e-14:
                E[row] = -pull / length
    return np.asarray(E @ E.T)


def recover(X: np.ndarray, L: np.ndarray, beta: float) -> np.ndarray:
    """F of the objective above."""
    G = laplacian(X, 20, mean_distance(X))
    group = KMeans(CLUSTERS, n_init=3, random_state=0).fit_predict(X)
    members = [np.flatnonzero(group == place) for place in range(CLUSTERS)]
    F = L.copy()
    for _ in range(ROUNDS if beta else 1):
        P = [correlations(F[rows].T @ F[rows]) for rows in members]

        def gradient(flat: np.ndarray, P: list[np.ndarray] = P) -> np.ndarray:
            values = flat.reshape(L.shape)
            result = values + ALPHA * (G @ values)
            for rows, matrix in zip(members, P, strict=True):
                result[rows] += beta * (values[rows] @ matrix)
            return np.asarray(result.ravel())

        system = LinearOperator((L.size, L.size), gradient, dtype=np.float64)
        F = cg(system, L.ravel(), x0=F.ravel(), rtol=1e-8)[0].reshape(L.shape)
    return F


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--datasets", nargs="+", default=["SJAFFE", "Yeast_cold", "Yeast_spoem"])
    for name in parser.parse_args().datasets:
        X, D = load_dataset(name)
        X, L = StandardScaler().fit_transform(X), to_label_sets(D, mass=0.5).astype(np.float64)
        for beta in (0.0, 1e-4, 1e-2, 0.1, 1.0):
            with_term = kullback_leibler(D, softmax(recover(X, L, beta)))
            scaled = kullback_leibler(D, softmax(L / (1 + beta)))
            print(f"{name} beta={beta:g}: GLLE {with_term:.4f}, softmax(L / (1 + beta)) {scaled:.4f}", flush=True)


if __name__ == "__main__":
    main()
