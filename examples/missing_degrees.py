"""
Missing degrees: can a model learn from half-filled tables?
===========================================================

Surveys drop questions and annotators skip labels. NaN in the table of distributions means that a degree was not
observed. How much is lost if a quarter, a half or three quarters of the cells are missing, and is it better to fill
them in first?

The data are simulated: five features, six labels, degrees from a softmax of a linear function plus noise.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import softmax

from skldl import SABFGS, MeanDistribution
from skldl.data import make_missing
from skldl.metrics import kullback_leibler

N_LABELS = 6


def problem(n, seed):
    weights = np.random.default_rng(3).normal(size=(5, N_LABELS))
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n, 5))
    return X, softmax(X @ weights + 0.5 * generator.normal(size=(n, N_LABELS)), axis=1)


X, D = problem(150, 0)
X_new, D_new = problem(1000, 1)
observed = make_missing(D, rate=0.5, random_state=0)
print(np.round(observed[:4], 2))

# %%
# Three ways to learn from gaps
# -----------------------------
# *Learn from what was observed*: the likelihood of the observed degrees, which `SABFGS` maximises by itself where the
# table has gaps. *Fill in the mean*: gaps get the column's mean, and rows are divided by their sum. *Drop rows*: only
# complete rows are used, as long as there are any.


def filled(table):
    whole = np.where(np.isnan(table), np.nanmean(table, axis=0), table)
    return whole / whole.sum(axis=1, keepdims=True)


model = SABFGS(alpha=1e-3, fit_intercept=True, missing="degrees")
RATES = (0.0, 0.1, 0.25, 0.5, 0.75)
losses = {"learn from what was observed": [], "fill in the mean": [], "drop rows with gaps": []}
for rate in RATES:
    table = make_missing(D, rate=rate, random_state=0)
    complete = ~np.isnan(table).any(axis=1)
    losses["learn from what was observed"].append(kullback_leibler(D_new, model.fit(X, table).predict(X_new)))
    losses["fill in the mean"].append(kullback_leibler(D_new, model.fit(X, filled(table)).predict(X_new)))
    dropped = model.fit(X[complete], D[complete]).predict(X_new) if complete.sum() >= 5 else None
    losses["drop rows with gaps"].append(np.nan if dropped is None else kullback_leibler(D_new, dropped))
    print(f"{rate:4.0%} missing: " + ", ".join(f"{name} {values[-1]:.3f}" for name, values in losses.items()))

mean = kullback_leibler(D_new, MeanDistribution().fit(X, D).predict(X_new))
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for name, values in losses.items():
    ax.plot(RATES, values, marker="o", label=name)
ax.axhline(mean, color="0.5", linestyle="--", label="mean distribution, nothing missing")
ax.set(xlabel="share of the cells that are missing", ylabel="Kullback-Leibler divergence on new rows ↓", ylim=(0, None))
ax.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
ax.legend(frameon=False)
plt.show()

# %%
# Filling the table
# -----------------
# ``complete`` keeps what was observed and fills the gaps with the model's prediction, scaled to the mass that is left.

table = make_missing(D, rate=0.5, random_state=0)
completed = model.fit(X, table).complete(X, table)
gaps = np.isnan(table)
figure, ax = plt.subplots(figsize=(4.8, 4.4), layout="constrained")
ax.plot(D[gaps], filled(table)[gaps], ".", markersize=3, color="0.6", label="column mean")
ax.plot(D[gaps], completed[gaps], ".", markersize=3, color="#0072B2", label="completed by the model")
ax.plot([0, 1], [0, 1], color="0.5", linestyle=":")
ax.set(xlabel="true degree in the gap", ylabel="degree that was filled in")
ax.legend(frameon=False, markerscale=3)
plt.show()
