"""
I know scikit-learn: what do I gain?
====================================

Any multi-output regressor can be fitted to a table of distributions. Its predictions need not be distributions, though,
and its loss is not made for them. This example compares what a user of scikit-learn would try with learners of this
package, on the bundled tweets (the presence of 500 words and pairs of words).
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, GroupKFold, GroupShuffleSplit
from sklearn.neighbors import KNeighborsRegressor

from skldl import SABFGS, AARegressor, MeanDistribution
from skldl.data import load_tweets
from skldl.metrics import SCORERS, skill

tweets = load_tweets(n_features=500)
train, test = next(GroupShuffleSplit(test_size=0.3, random_state=0).split(tweets.X, groups=tweets.groups))
X, D, groups = tweets.X[train], tweets.D[train], tweets.groups[train]
X_test, D_test = tweets.X[test], tweets.D[test]

# %%
# What a plain regressor predicts
# -------------------------------
# Degrees below zero, and rows that do not sum to one once rounding or clipping sets in. `AARegressor` projects the
# predictions onto the simplex, so that any regressor becomes a label distribution learner.

plain = Ridge(alpha=10).fit(X, D).predict(X_test)
below = (plain < 0).any(axis=1).mean()
print(f"{below:.0%} of the rows of Ridge hold a degree below zero; the least is {plain.min():.2f}")
projected = AARegressor(Ridge(alpha=10)).fit(X, D).predict(X_test)
print(
    f"after projection the least is {projected.min():.2f}, and row sums lie within {np.ptp(projected.sum(axis=1)):.0e}"
)

# %%
# The same tools: GridSearchCV and scorers
# ----------------------------------------
# Learners of this package are scikit-learn estimators. ``SCORERS`` holds a scorer for every measure.

candidates = {
    "Ridge, projected": (AARegressor(Ridge()), {"regressor__alpha": [1, 10, 100]}),
    "KNeighborsRegressor, projected": (AARegressor(KNeighborsRegressor()), {"regressor__n_neighbors": [20, 60]}),
    "SABFGS": (SABFGS(fit_intercept=True), {"alpha": [3e-4, 1e-3, 3e-3]}),
}
reference = MeanDistribution().fit(X, D).predict(X_test)
skills = {}
for name, (model, grid) in candidates.items():
    search = GridSearchCV(model, grid, scoring=SCORERS["kullback_leibler"], cv=GroupKFold(3))
    search.fit(X, D, groups=groups)
    skills[name] = skill(D_test, search.predict(X_test), reference, counts=tweets.counts[test])
    print(f"{name:34s}{search.best_params_}: skill {skills[name]:.3f}")

# %%
# Skill is the share of the mean's Kullback-Leibler divergence that the model removes; the lines are 95 % intervals. A
# projected regressor predicts zeros, which that divergence punishes hard.

figure, ax = plt.subplots(figsize=(8.5, 3), layout="constrained")
for place, value in enumerate(skills.values()):
    ax.hlines(place, value.low, value.high, color="0.3")
    ax.plot(float(value), place, "o", markersize=8, color="#0072B2" if place > 1 else "#E69F00")
ax.axvline(0, color="0.5", linewidth=0.8)
ax.set_yticks(range(len(skills)), skills)
ax.invert_yaxis()
ax.set(xlabel="skill against the mean (orange: scikit-learn's regressors)")
plt.show()
