"""
Ordered labels: which measure sees that 4 stars are nearer to 5 than 1 star is?
===============================================================================

Kullback-Leibler divergence, Chebyshev distance and similar measures compare label with label. Shift all mass by one
label or by four: to them it is the same error. Measures for ordered labels count how far the mass has to move.
"""

import matplotlib.pyplot as plt
import numpy as np

from skldl import SABFGS, SmoothLossLDL
from skldl.distributions import from_neighbours
from skldl.metrics import MEASURES, evaluate

STARS = np.arange(1, 6)
NAMES = ["kullback_leibler", "chebyshev", "earth_mover", "cumulative_jensen_shannon", "error_of_mean"]

# %%
# One prediction is off by one star, the other by four
# ----------------------------------------------------

truth = np.full((1, 5), 0.05)
truth[0, 0] = 0.8
predictions = {"off by one": truth[:, [1, 0, 2, 3, 4]], "off by four": truth[:, ::-1]}
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
for offset, (name, D) in enumerate({"truth": truth, **predictions}.items()):
    left.bar(STARS + 0.27 * (offset - 1), D[0], width=0.27, label=name, color=f"C{offset - 1}" if offset else "0.2")
left.set(xlabel="stars", ylabel="degree")
left.legend(frameon=False, loc="upper center")
near, far = (evaluate(truth, P, measures=NAMES) for P in predictions.values())
ratios = [far[name] / near[name] for name in NAMES]
right.barh([MEASURES[name].title for name in NAMES], ratios, color="#0072B2")
right.axvline(1, color="0.5", linestyle=":")
right.set(xlabel="error of “off by four” divided by error of “off by one”")
right.invert_yaxis()
plt.show()

# %%
# Must one train for it?
# ----------------------
# `SmoothLossLDL` takes losses for ordered labels, too; "cad" is the cumulative absolute distance. On simulated ratings
# (a linear model of the mean rating with Gaussian neighbours, learned from 60 rows by a linear softmax model, which is
# not the true one) it is compared with the usual likelihood. The likelihood is ahead in every column: report a measure
# for ordered labels, but do not expect that training for it is always better.


def ratings(n, seed):
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n, 8))
    centre = np.clip(3 + X @ np.linspace(-0.6, 0.6, 8) + 0.3 * generator.normal(size=n), 1, 5)
    return X, from_neighbours(centre, labels=STARS, scale=0.6)


X_test, D_test = ratings(2000, 100)
rows = {"likelihood (SABFGS)": [], "cumulative distance (SmoothLossLDL)": []}
for seed in range(10):
    X, D = ratings(60, seed)
    for name, model in zip(
        rows, (SABFGS(alpha=1e-3, fit_intercept=True), SmoothLossLDL("cad", alpha=1e-3)), strict=True
    ):
        rows[name].append(list(evaluate(D_test, model.fit(X, D).predict(X_test), measures=NAMES).values()))
print(f"{'':38s}" + "".join(f"{MEASURES[name].title[:16]:>18s}" for name in NAMES))
for name, values in rows.items():
    print(f"{name:38s}" + "".join(f"{value:18.4f}" for value in np.mean(values, axis=0)))
