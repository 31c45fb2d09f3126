"""
Choosing among many models: how much of the best score is luck?
===============================================================

Try enough models on a small table and one of them looks good. This example compares the score of the best of 14
candidates with what it is worth on new rows, and with an estimate that repeats the whole choice inside each fold
(nested cross-validation).

The data are simulated. In *noise* the features have nothing to do with the distributions; in *signal* they do, a
little: the distributions are a softmax of 0.2 times a linear function of the features plus standard normal noise. Both
have 80 rows, ten features and four labels.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import softmax
from sklearn.model_selection import KFold, cross_val_predict

from skldl import AAKNN, SABFGS, MeanDistribution
from skldl.metrics import kullback_leibler, skill_ratio

CANDIDATES = {f"neighbours, k = {k}": AAKNN(k) for k in (3, 5, 8, 12, 18, 27, 40)}
CANDIDATES |= {f"linear, alpha = {a:.0e}": SABFGS(alpha=a, fit_intercept=True) for a in np.logspace(-3, 1, 7)}


def problem(n, seed, strength):
    generator = np.random.default_rng(seed)
    weights = np.random.default_rng(11).normal(size=(10, 4))
    X = generator.normal(size=(n, 10))
    return X, softmax(strength * X @ weights + generator.normal(size=(n, 4)), axis=1)


def skills(X, D, seed):
    """Skill of every candidate by cross-validation: the share of the mean's divergence that it removes."""
    folds = KFold(4, shuffle=True, random_state=seed)
    mean = kullback_leibler(D, cross_val_predict(MeanDistribution(), X, D, cv=folds))
    return {
        name: float(skill_ratio(kullback_leibler(D, cross_val_predict(model, X, D, cv=folds)), mean))
        for name, model in CANDIDATES.items()
    }


def nested_skill(X, D, seed):
    """Choose on each training part alone, and judge the choice on the part held out."""
    losses, reference = [], []
    for train, test in KFold(5, shuffle=True, random_state=seed).split(X):
        inner = skills(X[train], D[train], seed)
        best = CANDIDATES[max(inner, key=inner.get)]
        losses += list(kullback_leibler.rowwise(D[test], best.fit(X[train], D[train]).predict(X[test])))
        mean = MeanDistribution().fit(X[train], D[train]).predict(X[test])
        reference += list(kullback_leibler.rowwise(D[test], mean))
    return float(skill_ratio(np.mean(losses), np.mean(reference)))


# %%
# Four tables of each kind
# ------------------------
# For each table: the score of the best candidate, the nested estimate, and the true skill of that candidate on 2,000
# new rows.

results = {}
for kind, strength in {"noise": 0.0, "signal": 0.2}.items():
    X_new, D_new = problem(2000, 1000, strength)
    rows = []
    for seed in range(4):
        X, D = problem(80, seed, strength)
        scores = skills(X, D, seed)
        best = max(scores, key=scores.get)
        new = kullback_leibler(D_new, CANDIDATES[best].fit(X, D).predict(X_new))
        mean = kullback_leibler(D_new, MeanDistribution().fit(X, D).predict(X_new))
        rows.append((scores[best], nested_skill(X, D, seed), float(skill_ratio(new, mean))))
    results[kind] = np.array(rows)
    print(f"{kind:7s}best score {results[kind][:, 0].mean():+.3f}, nested {results[kind][:, 1].mean():+.3f}, ", end="")
    print(f"true {results[kind][:, 2].mean():+.3f}")

figure, axes = plt.subplots(1, 2, figsize=(9, 3.8), sharey=True, layout="constrained")
for ax, (kind, rows) in zip(axes, results.items(), strict=True):
    for row in rows:
        ax.plot(range(3), row, color="0.8", zorder=1)
    for place, colour in enumerate(("#E69F00", "#56B4E9", "0.2")):
        ax.plot(np.full(len(rows), place), rows[:, place], "o", color=colour, alpha=0.8)
        ax.plot([place - 0.2, place + 0.2], [rows[:, place].mean()] * 2, color=colour, linewidth=3)
    ax.axhline(0, color="0.5", linewidth=0.8)
    ax.set_xticks(range(3), ["score of\nthe best", "nested\nestimate", "true, on\nnew rows"])
    ax.set(title=kind, xlim=(-0.5, 2.5))
axes[0].set_ylabel("skill against the mean")
plt.show()

# %%
# The score of the best candidate is too good on average. The nested estimate is lower; for a single small table it
# still varies much. ``skldl evaluate`` and studies with ``protocol = "nested"`` do this for you, and ``skldl fit``
# prints an estimate that is cross-fitted over the whole choice.
