"""
Head pose: how are labels on a circle learned?
==============================================

A head can turn to any side, and 350° is a neighbour of 10°. Ordinary classes do not know that, and a regression on the
angle breaks where 360 meets 0. Label distributions on a circle have neither problem.

The data are simulated: six sensors around the head see it under the angle a as exp(2 cos(a - sensor)), with noise.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from skldl import SABFGS
from skldl.distributions import from_neighbours

LABELS = np.arange(0, 360, 15)
SENSORS = np.deg2rad(np.arange(0, 360, 60))


def sample(n, seed):
    generator = np.random.default_rng(seed)
    angle = generator.uniform(0, 360, n)
    seen = np.exp(2 * np.cos(np.deg2rad(angle)[:, None] - SENSORS))
    return seen + generator.normal(scale=0.8, size=seen.shape), angle


def circular_mean(D):
    """The direction of the mean on the circle."""
    return np.rad2deg(np.angle(D @ np.exp(1j * np.deg2rad(LABELS)))) % 360


def circular_error(predicted, true):
    return np.abs((predicted - true + 180) % 360 - 180)


# %%
# On the circle, and cut open
# ---------------------------
# ``circular=True`` lets the first label be a neighbour of the last. Without it, the same model gets half of the
# neighbourhood wrong at the cut. `from_neighbours` rejects angles beyond the interval of the last label without
# ``circular``, so that they are moved to its end here.

X, angle = sample(600, 0)
X_test, angle_test = sample(2000, 1)
round_D = from_neighbours(angle, labels=LABELS, scale=20, circular=True)
cut_D = from_neighbours(np.minimum(angle, 352), labels=LABELS, scale=20)
features = make_pipeline(PolynomialFeatures(2, include_bias=False), StandardScaler())
Z, Z_test = features.fit_transform(X), features.transform(X_test)
model = SABFGS(alpha=1e-3, fit_intercept=True)
predictions = {
    "label distributions on the circle": circular_mean(model.fit(Z, round_D).predict(Z_test)),
    "label distributions, cut at 0°": model.fit(Z, cut_D).predict(Z_test) @ LABELS,
    "ridge regression on the angle": RidgeCV(np.logspace(-3, 3, 7)).fit(Z, angle).predict(Z_test),
}
figure, ax = plt.subplots(figsize=(8, 3.8), layout="constrained")
bins = np.arange(0, 361, 20)
for name, predicted in predictions.items():
    error = circular_error(predicted, angle_test)
    near_the_cut = error[abs(angle_test - 180) > 160]
    print(f"{name:36s}mean error {error.mean():5.1f}°, within 20° of the cut {near_the_cut.mean():5.1f}°")
    by_bin = [error[(angle_test >= low) & (angle_test < low + 20)].mean() for low in bins[:-1]]
    ax.plot(bins[:-1] + 10, by_bin, marker="o", markersize=4, label=name)
ax.set(xlabel="true angle", ylabel="mean error in degrees", xticks=np.arange(0, 361, 60))
ax.legend(frameon=False)
plt.show()

# %%
# Three heads
# -----------

shown = [int(np.argmin(circular_error(angle_test, wanted))) for wanted in (2, 120, 250)]
P = model.fit(Z, round_D).predict(Z_test[shown])
figure, axes = plt.subplots(1, 3, figsize=(9, 3.3), subplot_kw={"projection": "polar"}, layout="constrained")
for ax, row, degrees in zip(axes, shown, P, strict=True):
    ax.bar(np.deg2rad(LABELS), degrees, width=np.deg2rad(13), color="#56B4E9")
    ax.plot([np.deg2rad(angle_test[row])] * 2, [0, degrees.max()], color="#D55E00", linewidth=2)
    ax.set_theta_zero_location("N")
    ax.set_yticks([])
    ax.set_title(f"true angle {angle_test[row]:.0f}°", fontsize=10)
plt.show()
