"""
Age: does it help to learn from neighbouring ages?
==================================================

A face at 30 looks much like one at 29 or 31. If each of 80 ages is a class of its own, most classes have few examples
and the model has no information that neighbouring ages are similar. Label distribution learning began with this
problem: every face also counts, a little, for the ages beside its own.

The data are simulated: 40 features of a face, each a smooth random function of the age (a sum of three sines) plus
Gaussian noise that is larger for older faces.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import RidgeCV

from skldl import SABFGS
from skldl.distributions import expected_value, from_neighbours

AGES = np.arange(1, 81)
generator = np.random.default_rng(0)
FREQUENCY, PHASE = generator.uniform(0.2, 1.2, size=(3, 40)), generator.uniform(0, 6.3, size=(3, 40))


def faces(ages, generator):
    """Forty features of each face."""
    t = ages[:, None, None] / 80
    smooth = np.sin(2 * np.pi * FREQUENCY * t + PHASE).sum(axis=1)
    return smooth + generator.normal(size=smooth.shape) * (0.7 + 1.0 * t[:, :, 0])


def sample(n, generator):
    ages = generator.integers(1, 81, n)
    return faces(ages, generator), ages


# %%
# How wide should the neighbourhood be?
# -------------------------------------
# `from_neighbours` spreads each age by a Gaussian of the given scale; scale 0 is one class for each age. The prediction
# is the expected age. All models see the same 400 faces, five for each age; the mean of five repetitions is shown.

SCALES = (0, 1, 2, 3, 5, 8, 12, 20)
X_test, age_test = sample(2000, np.random.default_rng(99))
errors = {scale: [] for scale in SCALES}
baseline = []
for seed in range(5):
    X, age = sample(400, np.random.default_rng(seed))
    for scale in SCALES:
        D = from_neighbours(age, labels=AGES, scale=scale)
        model = SABFGS(alpha=1e-3, fit_intercept=True).fit(X, D)
        errors[scale].append(np.abs(expected_value(model.predict(X_test), AGES) - age_test).mean())
    baseline.append(np.abs(RidgeCV(np.logspace(-3, 3, 7)).fit(X, age).predict(X_test) - age_test).mean())
for scale in SCALES:
    print(f"scale {scale:2d}: mean absolute error {np.mean(errors[scale]):.2f} years")
print(f"ridge regression on the age: {np.mean(baseline):.2f} years")

figure, ax = plt.subplots(figsize=(7, 3.8), layout="constrained")
means = [np.mean(errors[scale]) for scale in SCALES]
spread = [np.std(errors[scale]) for scale in SCALES]
ax.errorbar(SCALES, means, yerr=spread, marker="o", capsize=3, label="label distributions, expected age")
ax.axhline(np.mean(baseline), color="0.4", linestyle="--", label="ridge regression on the age")
ax.set(xlabel="scale of the neighbourhood in years (0: one class for each age)", ylabel="mean absolute error in years")
ax.set_ylim(0, None)
ax.legend(frameon=False)
plt.show()

# %%
# The whole distribution
# ----------------------
# A regression gives a number. The distribution shows which ages are plausible. Its width includes the three years
# by which we spread the labels, so that it has no guaranteed coverage: see :ref:`sphx_glr_gallery_how_sure.py`.

X, age = sample(400, np.random.default_rng(0))
model = SABFGS(alpha=1e-3, fit_intercept=True).fit(X, from_neighbours(age, labels=AGES, scale=3))
shown = np.array([10, 40, 70])
figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
for true, degrees in zip(shown, model.predict(faces(shown, np.random.default_rng(5))), strict=True):
    (line,) = ax.plot(AGES, degrees, label=f"a face of {true}")
    ax.axvline(true, color=line.get_color(), linestyle=":")
ax.set(xlabel="age", ylabel="predicted degree")
ax.legend(frameon=False)
plt.show()
