"""
Sets of labels: is a label distribution learner a good multi-label classifier?
==============================================================================

Two problems. *Made*: scikit-learn's ``make_multilabel_classification``. *Digits*: scikit-learn's bundled pictures of
handwritten digits, one to three of them laid over each other (the brighter pixel wins): which digits are there?
Train and test pictures are made from different digits. Each learner comes three times: as binary relevance (one model
per label), inside `LDLClassifier`, and there with degrees enhanced by propagation. None of them is tuned.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits, make_multilabel_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, hamming_loss, label_ranking_average_precision_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skldl import AAKNN, SABFGS, LDLClassifier
from skldl.distributions import PropagationEnhancer

N_ROWS, N_REPEATS = 400, 2
MEASURES = {
    "micro F1 ↑": lambda Y, P, S: f1_score(Y, P, average="micro"),
    "Hamming loss ↓": lambda Y, P, S: hamming_loss(Y, P),
    "ranking precision ↑": lambda Y, P, S: label_ranking_average_precision_score(Y, S),
}

# %%
# The problems
# ------------


def overlay(images, digits, generator):
    """Lay one to three pictures over each other; the set of labels is the set of their digits."""
    X, Y = np.zeros((N_ROWS, images.shape[1])), np.zeros((N_ROWS, 10), dtype=int)
    for row in range(N_ROWS):
        chosen = generator.choice(len(images), size=generator.integers(1, 4), replace=False)
        X[row] = images[chosen].max(axis=0)
        Y[row, digits[chosen]] = 1
    return X, Y


def problems(seed):
    """Train and test sets of both problems: X_train, Y_train, X_test, Y_test."""
    generator = np.random.default_rng(seed)
    X, Y = make_multilabel_classification(2 * N_ROWS, n_features=20, n_classes=6, random_state=seed)
    images, digits = load_digits(return_X_y=True)
    order = generator.permutation(len(images))
    half = len(order) // 2
    train, test = order[:half], order[half:]
    return {
        "made": (X[:N_ROWS], Y[:N_ROWS], X[N_ROWS:], Y[N_ROWS:]),
        "digits": (
            *overlay(images[train], digits[train], generator),
            *overlay(images[test], digits[test], generator),
        ),
    }


X, Y, _, _ = problems(0)["digits"]
figure, axes = plt.subplots(1, 6, figsize=(9, 2), layout="constrained")
for ax, picture, labels in zip(axes, X, Y, strict=False):
    ax.imshow(picture.reshape(8, 8), cmap="gray_r")
    ax.set_title(" ".join(str(digit) for digit in np.flatnonzero(labels)), fontsize=10)
    ax.axis("off")
plt.show()

# %%
# The models
# ----------

linear = SABFGS(alpha=1e-3, fit_intercept=True)
MODELS = {
    "logistic, binary relevance": OneVsRestClassifier(LogisticRegression(max_iter=5000)),
    "SA-BFGS, LDL": LDLClassifier(linear),
    "SA-BFGS, LDL, enhanced": LDLClassifier(linear, enhance=PropagationEnhancer()),
    "kNN, binary relevance": KNeighborsClassifier(10),
    "AA-kNN, LDL": LDLClassifier(AAKNN(10)),
    "AA-kNN, LDL, enhanced": LDLClassifier(AAKNN(10), enhance=PropagationEnhancer()),
}


def probabilities(model, X):
    """Probability of each label; some classifiers return one array per label."""
    P = model.predict_proba(X)
    if isinstance(P, list):
        return np.column_stack([p[:, 1] if p.shape[1] == 2 else np.zeros(len(X)) for p in P])
    return P


results = {}
for seed in range(N_REPEATS):
    for problem, (X_train, Y_train, X_test, Y_test) in problems(seed).items():
        for name, classifier in MODELS.items():
            model = make_pipeline(StandardScaler(), classifier).fit(X_train, Y_train)
            P, S = model.predict(X_test), probabilities(model, X_test)
            values = [measure(Y_test, P, S) for measure in MEASURES.values()]
            results.setdefault(problem, {}).setdefault(name, []).append(values)
for problem, rows in results.items():
    print(f"{problem}: mean ± standard deviation over {N_REPEATS} repeats")
    print(f"{'':28s}" + "".join(f"{measure:>20s}" for measure in MEASURES))
    for name, values in rows.items():
        cells = zip(np.mean(values, axis=0), np.std(values, axis=0), strict=True)
        print(f"{name:28s}" + "".join(f"{f'{mean:.3f} ± {std:.3f}':>20s}" for mean, std in cells))

# %%
# Circles are linear models, squares are neighbours. Where labels are plain sets, binary relevance is hard to beat:
# logistic regression for each label is ahead on both problems. Enhanced degrees rank the labels better than sets do for
# neighbours, and for the linear model on the digits. Use `LDLClassifier` where you have degrees, or want them.

figure, axes = plt.subplots(2, 3, figsize=(11, 5.5), sharey=True, layout="constrained")
for row, (problem, scores) in enumerate(results.items()):
    for column, measure in enumerate(MEASURES):
        ax = axes[row, column]
        for place, values in enumerate(scores.values()):
            mean, spread = np.mean(values, axis=0)[column], np.std(values, axis=0)[column]
            ax.errorbar(mean, place, xerr=spread, fmt="o" if place < 3 else "s", color=f"C{place % 3}", capsize=3)
        ax.set_title(f"{problem}: {measure}", fontsize=10)
        ax.grid(axis="x", alpha=0.3)
        ax.axhline(2.5, color="0.8", linewidth=0.8)
    axes[row, 0].set_yticks(range(len(scores)), list(scores))
axes[0, 0].invert_yaxis()
plt.show()
