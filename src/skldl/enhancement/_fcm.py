r"""FCM: label enhancement by fuzzy clusters (El Gayar, Schwenker and Palm, 2006).

Fuzzy c-means assigns each row a membership u in each of p clusters,

    u_ik = 1 / Σ_l (‖x_i − v_k‖ / ‖x_i − v_l‖)^{2/(β−1)},    v_k = Σ_i u_ik^β x_i / Σ_i u_ik^β.

A = UᵀL, each row divided by its sum, measures how strongly cluster k has label j. The score of a label is the max-min
composition max_k min(u_ik, a_kj), and the distribution is the softmax of the scores.
"""

from typing import ClassVar

import numpy as np
from sklearn.cluster import kmeans_plusplus
from sklearn.metrics import pairwise_distances

from skldl.enhancement._base import InductiveEnhancer
from skldl.utils.parameters import COUNT, NONE, NOT_NEGATIVE, RANDOM_STATE, integer, number
from skldl.utils.typing import FloatArray


class FCM(InductiveEnhancer):
    """Label enhancement by fuzzy c-means.

    Parameters
    ----------
    n_clusters : int, default=None
        Number of clusters; None means twice the number of labels, and at most as many as there are rows.
    fuzziness : float, default=2.0
        β, above 1; memberships are more even for larger values.
    max_iter : int, default=100
        Largest number of steps.
    tol : float, default=1e-6
        The search ends when no membership changes by more.
    random_state : int, default=0
        Seed of the first centres (k-means++).

    Attributes
    ----------
    distributions_ : ndarray of shape (n_samples, n_labels)
        Distributions of the training rows.
    centres_ : ndarray of shape (n_clusters, n_features)
        Centres, in standardised features.
    prototypes_ : ndarray of shape (n_clusters, n_labels)
        How strongly each cluster has each label; rows sum to one.
    classes_ : list
        Names of the labels.
    n_iter_ : int
        Number of steps.

    References
    ----------
    .. [1] N. El Gayar, F. Schwenker and G. Palm, "A study of the robustness of kNN classifiers trained using soft
       labels", ANNPR 2006.

    Examples
    --------
    >>> from skldl.enhancement import FCM
    >>> X = [[0.0], [0.1], [0.2], [3.0], [3.1], [3.2]]
    >>> L = [[1, 0], [1, 0], [1, 1], [0, 1], [0, 1], [0, 1]]
    >>> FCM(n_clusters=2).fit_transform(X, L).round(2)
    array([[0.62, 0.38],
           [0.62, 0.38],
           [0.62, 0.38],
           [0.27, 0.73],
           [0.27, 0.73],
           [0.27, 0.73]])
    """

    _constraints: ClassVar = {
        "n_clusters": NONE | integer(at_least=2),
        "fuzziness": number(above=1),
        "max_iter": COUNT,
        "tol": NOT_NEGATIVE,
        "random_state": RANDOM_STATE,
    }

    def __init__(
        self,
        n_clusters: int | None = None,
        *,
        fuzziness: float = 2.0,
        max_iter: int = 100,
        tol: float = 1e-6,
        random_state: int | None = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.fuzziness = fuzziness
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def _enhance(self, X: FloatArray, L: FloatArray) -> FloatArray:
        n_clusters = min(self.n_clusters or 2 * L.shape[1], len(X))
        self.centres_, _ = kmeans_plusplus(X, n_clusters, random_state=self.random_state)
        U = np.zeros((len(X), n_clusters))
        for step in range(1, self.max_iter + 1):
            before, U = U, memberships(X, self.centres_, self.fuzziness)
            self.n_iter_ = step
            if np.abs(U - before).max() <= self.tol:
                break
            powers = U**self.fuzziness
            self.centres_ = (powers.T @ X) / powers.sum(axis=0)[:, None]
        mass = U.T @ L
        total = mass.sum(axis=1, keepdims=True)
        self.prototypes_ = np.divide(mass, total, out=np.full_like(mass, 1 / L.shape[1]), where=total > 0)
        return composition(U, self.prototypes_)

    def _score(self, X: FloatArray) -> FloatArray:
        return composition(memberships(X, self.centres_, self.fuzziness), self.prototypes_)


def memberships(X: FloatArray, centres: FloatArray, fuzziness: float) -> FloatArray:
    """Memberships of rows in clusters, which sum to one; a row at a centre has membership one in it."""
    distances = pairwise_distances(X, centres)
    nearest = distances.min(axis=1, keepdims=True)
    # relative to the nearest centre, so that powers do not overflow; 0/0 at a centre is 1 for that centre
    ratio = np.divide(nearest, distances, out=(distances == 0).astype(np.float64), where=nearest > 0)
    powers = ratio ** (2.0 / (fuzziness - 1.0))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def composition(U: FloatArray, A: FloatArray) -> FloatArray:
    """Max-min composition max_k min(u_ik, a_kj), without an array over rows, clusters and labels."""
    result = np.minimum(U[:, :1], A[0])
    for cluster in range(1, len(A)):
        np.maximum(result, np.minimum(U[:, cluster : cluster + 1], A[cluster]), out=result)
    return result
