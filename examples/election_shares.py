"""
Election shares: why must whole counties be held out?
=====================================================

Shares of five parties are known in the precincts of some counties, and wanted for the precincts of other counties.
Precincts of one county resemble each other in ways that the model could memorise. How good does the model seem if
precincts are shuffled into folds, and how good is it in a new county?

The data are simulated: 25 counties with 24 precincts each. A county has ten properties that all of its precincts share
up to small deviations, and an effect on the shares that no property explains.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import softmax
from sklearn.model_selection import GroupKFold, KFold, cross_val_predict

from skldl import AAKNN, SABFGS, MeanDistribution, RandomForestLDL
from skldl.metrics import kullback_leibler

PARTIES = ["A", "B", "C", "D", "E"]


def precincts(n_counties, seed, weights):
    """Properties, shares and counties of precincts."""
    generator = np.random.default_rng(seed)
    county = np.repeat(np.arange(n_counties), 24)
    X = generator.normal(size=(n_counties, 10))[county] + 0.15 * generator.normal(size=(len(county), 10))
    effect = 0.7 * generator.normal(size=(n_counties, len(PARTIES)))[county]
    shares = softmax(X @ weights + effect + 0.1 * generator.normal(size=(len(county), len(PARTIES))), axis=1)
    return X, shares, county


weights = 0.25 * np.random.default_rng(7).normal(size=(10, len(PARTIES)))
X, D, county = precincts(25, 0, weights)
X_new, D_new, _ = precincts(200, 1, weights)  # counties that took no part: the truth about "how good"

# %%
# Two estimates and the truth
# ---------------------------
# The estimate with shuffled precincts says how good the model is in counties that it knows. Most people want the other
# one: `GroupKFold` keeps each county in one fold.

models = {
    "mean": MeanDistribution(),
    "linear": SABFGS(alpha=1e-2, fit_intercept=True),
    "3 neighbours": AAKNN(3),
    "forest": RandomForestLDL(n_estimators=50, kind="random", min_samples_leaf=2, max_features=0.5, random_state=0),
}
estimates = {}
for name, model in models.items():
    shuffled = cross_val_predict(model, X, D, cv=KFold(5, shuffle=True, random_state=0))
    by_county = cross_val_predict(model, X, D, cv=GroupKFold(5), groups=county)
    new = model.fit(X, D).predict(X_new)
    estimates[name] = [kullback_leibler(D, shuffled), kullback_leibler(D, by_county), kullback_leibler(D_new, new)]
    print(f"{name:14s}shuffled {{:.3f}}, by county {{:.3f}}, new counties {{:.3f}}".format(*estimates[name]))

figure, ax = plt.subplots(figsize=(8, 3.8), layout="constrained")
kinds = ("estimate, precincts shuffled", "estimate, whole counties held out", "new counties")
for offset, (kind, colour) in enumerate(zip(kinds, ("#E69F00", "#56B4E9", "0.3"), strict=True)):
    values = [row[offset] for row in estimates.values()]
    ax.bar(np.arange(len(models)) + 0.27 * (offset - 1), values, width=0.27, label=kind, color=colour)
ax.set_xticks(range(len(models)), models)
ax.set(ylabel="Kullback-Leibler divergence ↓")
ax.legend(frameon=False)
plt.show()

# %%
# Shuffled folds do not only flatter all models that can memorise a county: they choose the wrong one. Everything in
# this package that holds rows out takes ``groups``: `AutoLDL().fit(X, D, groups=county)`, `ConformalLDL`, and
# ``--groups`` on the command line.

best_shuffled = min(estimates, key=lambda name: estimates[name][0])
best_by_county = min(estimates, key=lambda name: estimates[name][1])
best_in_truth = min(estimates, key=lambda name: estimates[name][2])
print(
    f"chosen by shuffled folds: {best_shuffled}; by counties: {best_by_county}; best in new counties: {best_in_truth}"
)
