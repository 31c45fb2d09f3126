"""
How sure is a prediction? Intervals with guaranteed coverage
============================================================

A predicted distribution alone does not say how far it may be off. `ConformalLDL` wraps any learner and adds intervals
that contain all degrees of a new row at once, with the probability that you ask for. This holds for any model and any
data, as long as new rows come from the same source as the old ones.

We use the bundled lexicon: ten votes on each word, character n-grams as features.
"""

import matplotlib.pyplot as plt
import numpy as np

from skldl import SABFGS
from skldl.data import load_lexicon
from skldl.uncertainty import ConformalLDL

lexicon = load_lexicon()
order = np.random.default_rng(0).permutation(len(lexicon.D))
X, D = lexicon.X[order], lexicon.D[order]
words = [lexicon.tokens[i] for i in order]
train, test = np.arange(4000), np.arange(4000, 6000)

# %%
# Fit, calibrate, predict
# -----------------------
# A quarter of the training rows is kept for calibration. ``score="label"`` makes a box: one interval for each label.
# The intervals are wide, because they are for the shares of ten votes, which vary much even where the model is right.

learner = SABFGS(alpha=1e-3, fit_intercept=True)
model = ConformalLDL(learner, conformity_score="label", random_state=0).fit(X[train], D[train])
region = model.predict_region(X[test], level=0.9)
print(f"{region.contains(D[test]).mean():.3f} of the new words lie in their region; 0.9 was asked for")
print(f"mean width of an interval: {(region.upper - region.lower).mean():.2f}")

P = model.predict(X[test])
RATINGS = np.arange(-4, 5)
alphabetic = [row for row in range(len(test)) if words[test[row]].isalpha()]
shown = [min(alphabetic, key=lambda row: abs(P[row] @ RATINGS - wanted)) for wanted in (-2.2, 0.3, 2.2)]
figure, axes = plt.subplots(1, 3, figsize=(11, 3.4), sharey=True, layout="constrained")
for ax, row in zip(axes, shown, strict=True):
    ax.bar(RATINGS, D[test[row]], color="0.85", label="the ten votes")
    error = np.abs(np.stack([P[row] - region.lower[row], region.upper[row] - P[row]]))
    ax.errorbar(RATINGS, P[row], yerr=error, fmt="o", color="#0072B2", capsize=3, label="prediction, 90 %")
    ax.set(title=words[test[row]], xlabel="rating", xticks=RATINGS)
axes[0].set_ylabel("share of the raters")
axes[0].legend(frameon=False, fontsize=9)
plt.show()

# %%
# Coverage at every level
# -----------------------

levels = np.array([0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99])
figure, ax = plt.subplots(figsize=(5, 4.4), layout="constrained")
for score, marker in {"label": "o", "total_variation": "s"}.items():
    model = ConformalLDL(learner, conformity_score=score, random_state=0).fit(X[train], D[train])
    covered = [model.predict_region(X[test], level=level).contains(D[test]).mean() for level in levels]
    ax.plot(levels, covered, marker=marker, label=f'score="{score}"')
ax.plot([0.5, 1], [0.5, 1], color="0.5", linestyle=":")
ax.set(xlabel="level that was asked for", ylabel="share of new words inside")
ax.legend(frameon=False)
plt.show()
