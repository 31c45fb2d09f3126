"""
Survey shares: what would a district answer?
============================================

A survey asks people in 60 districts which of four means of transport they use most. Some districts have two answers,
some three hundred. Which shares would a district have that was not asked at all? And does it matter that some shares
rest on few answers?

The data are simulated: three properties of a district, standard normal; true shares are the softmax of a linear
function of them plus a district effect; the number of answers is log-uniform between 2 and 300.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import softmax

from skldl import SABFGS, MeanDistribution
from skldl.distributions import from_counts
from skldl.metrics import intersection

ANSWERS = ["car", "bus", "bicycle", "on foot"]
WEIGHTS = np.array([[1.0, -0.4, -0.3, -0.3], [-0.5, 0.9, 0.0, -0.4], [0.2, 0.1, -0.8, 0.5]])
START = np.array([0.8, 0.1, -0.4, -0.5])


def districts(n, seed):
    """Properties of districts, their true shares and the answers of a survey."""
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n, 3))
    truth = softmax(START + X @ WEIGHTS + 0.25 * generator.normal(size=(n, 4)), axis=1)
    n_answers = np.exp(generator.uniform(np.log(2), np.log(300), n)).astype(int)
    return X, truth, generator.multinomial(n_answers, truth)


# %%
# Counts become shares, and the number of answers becomes the weight
# ------------------------------------------------------------------
# A share of five answers says less than one of three hundred. ``return_weight=True`` gives the number of answers in
# each district, which ``fit`` takes as ``sample_weight``.

X_new, truth_new, _ = districts(2000, 1)  # districts that nobody asked
model = SABFGS(alpha=1e-3, fit_intercept=True)
results = {"mean of all districts": [], "each district alike": [], "weighted by answers": []}
for seed in range(20):
    X, truth, counts = districts(60, seed + 2)
    D, n_answers = from_counts(counts, return_weight=True)
    mean = MeanDistribution().fit(X, D, sample_weight=n_answers)
    results["mean of all districts"].append(intersection(truth_new, mean.predict(X_new)))
    results["each district alike"].append(intersection(truth_new, model.fit(X, D).predict(X_new)))
    weighted = model.fit(X, D, sample_weight=n_answers)
    results["weighted by answers"].append(intersection(truth_new, weighted.predict(X_new)))
for name, values in results.items():
    print(f"{name:24s}share of people placed right {np.mean(values):.3f} ± {np.std(values):.3f}")

figure, ax = plt.subplots(figsize=(7, 3), layout="constrained")
ax.boxplot(list(results.values()), orientation="horizontal", tick_labels=list(results), widths=0.5)
ax.set(xlabel="share of the people placed right in new districts ↑ (20 surveys)")
ax.invert_yaxis()
plt.show()

# %%
# A district that was asked, too
# ------------------------------
# Even where there are answers, five of them are a poor estimate. The model and the survey can be combined: the
# prediction counts as much as a few further answers.

few = counts.sum(axis=1) < 15
smoothed = from_counts(counts + 20 * weighted.predict(X))
for name, estimate in {"survey": D, "model": weighted.predict(X), "survey and model": smoothed}.items():
    print(f"{name:18s}fewer than 15 answers {intersection(truth[few], estimate[few]):.3f}, ", end="")
    print(f"others {intersection(truth[~few], estimate[~few]):.3f}")

row = int(np.argmin(np.where(counts.sum(axis=1) < 4, 1000, counts.sum(axis=1))))
figure, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
columns = {
    "true shares": truth,
    f"survey ({counts[row].sum()} answers)": D,
    "model": weighted.predict(X),
    "both": smoothed,
}
for offset, (name, table) in enumerate(columns.items()):
    ax.bar(
        np.arange(4) + 0.2 * (offset - 1.5),
        table[row],
        width=0.2,
        label=name,
        color=f"C{offset - 1}" if offset else "0.2",
    )
ax.set_xticks(range(4), ANSWERS)
ax.set(ylabel="share", title="One district with few answers")
ax.legend(frameon=False)
plt.show()
