"""
Species abundances: how does a community change along a gradient?
=================================================================

At each of 250 sites between valley and summit, a hundred plants were counted by species. Which mix of species is to be
expected at a site that nobody visited, and in a warmer climate?

The data are simulated: every species has an optimum of temperature and moisture and a breadth; its expected abundance
is a Gaussian function of both, and the counts of a site are multinomial.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from skldl import AAKNN, SABFGS, MeanDistribution
from skldl.distributions import from_counts
from skldl.metrics import PAPER_MEASURES, evaluate

SPECIES = ["beech", "spruce", "larch", "dwarf pine", "heath", "sedge"]
WARMTH = np.array([14.0, 9.0, 7.0, 4.5, 3.0, 2.0])
MOISTURE = np.array([0.5, 0.6, 0.3, 0.5, 0.2, 0.8])
BREADTH = np.array([3.0, 2.0, 1.2, 1.5, 2.5, 1.0])


def mixture(warmth, moisture):
    """The expected share of each species."""
    fit = np.exp(-(((warmth[:, None] - WARMTH) / BREADTH) ** 2 + ((moisture[:, None] - MOISTURE) / 0.35) ** 2) / 2)
    return (fit + 1e-4) / (fit + 1e-4).sum(axis=1, keepdims=True)


generator = np.random.default_rng(0)
warmth, moisture = generator.uniform(1, 16, 250), generator.uniform(0, 1, 250)
counts = generator.multinomial(100, mixture(warmth, moisture))
X, D = np.column_stack([warmth, moisture]), from_counts(counts)

# %%
# A niche is a parabola on the log scale
# --------------------------------------
# The maximum entropy model is linear in the logarithm of the degrees. A Gaussian niche is quadratic there, so that
# squares and products of the two variables are what the model needs. Neighbours need no such thought, but more sites.

models = {
    "mean": MeanDistribution(),
    "linear": make_pipeline(StandardScaler(), SABFGS(alpha=1e-5, fit_intercept=True)),
    "quadratic": make_pipeline(
        StandardScaler(), PolynomialFeatures(2, include_bias=False), SABFGS(alpha=1e-5, fit_intercept=True)
    ),
    "10 neighbours": make_pipeline(StandardScaler(), AAKNN(10)),
}
new_warmth, new_moisture = generator.uniform(1, 16, 1000), generator.uniform(0, 1, 1000)
X_new, truth = np.column_stack([new_warmth, new_moisture]), mixture(new_warmth, new_moisture)
print(f"{'':16s}" + "".join(f"{measure.title[:14]:>15s}{measure.arrow}" for measure in PAPER_MEASURES.values()))
for name, model in models.items():
    scores = evaluate(truth, model.fit(X, D).predict(X_new))
    print(f"{name:16s}" + "".join(f"{value:16.4f}" for value in scores.values()))

# %%
# From valley to summit
# ---------------------

line = np.linspace(16, 1, 120)
on_the_way = np.column_stack([line, np.full(120, 0.5)])
panels = {
    "true": mixture(line, np.full(120, 0.5)),
    "quadratic model": models["quadratic"].predict(on_the_way),
    "10 neighbours": models["10 neighbours"].predict(on_the_way),
}
figure, axes = plt.subplots(1, 3, figsize=(11, 3.8), sharey=True, layout="constrained")
for ax, (name, P) in zip(axes, panels.items(), strict=True):
    areas = ax.stackplot(line, P.T, labels=SPECIES, colors=plt.get_cmap("Set2").colors)
    ax.set(title=name, xlabel="mean temperature in °C", xlim=(16, 1), ylim=(0, 1))
axes[0].set_ylabel("share of the plants")
figure.legend(handles=areas, labels=SPECIES, loc="outside lower center", ncols=6, frameon=False)
plt.show()

# %%
# Two degrees warmer
# ------------------
# The same sites with two degrees more: which species gain and which lose, on average over the sites below 14 degrees?

cool = warmth < 14
now = models["quadratic"].predict(X[cool]).mean(axis=0)
later = models["quadratic"].predict(X[cool] + [2, 0]).mean(axis=0)
figure, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
ax.bar(SPECIES, later - now, color=np.where(later > now, "#1b7837", "#b2182b"))
ax.axhline(0, color="0.3", linewidth=0.8)
ax.set(ylabel="change of the mean share")
plt.show()
