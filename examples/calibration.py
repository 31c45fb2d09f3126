"""
Are the predictions too sharp?
==============================

Two neighbours are few: a prediction that averages their distributions jumps to extremes and is often wrong there.
`CalibratedLDL` learns from held-out rows how far predictions should be drawn back, and chooses among temperature
scaling, vector scaling, shrinkage towards the mean, and leaving them alone.

We use a simulated problem: three labels, a softmax of a linear function of eight features, and six votes for each row.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import softmax

from skldl import AAKNN
from skldl.metrics import kullback_leibler
from skldl.plots import CalibrationDisplay, TernaryDisplay
from skldl.uncertainty import CalibratedLDL

generator = np.random.default_rng(0)
X = generator.normal(size=(1200, 8))
truth = softmax(0.5 * X @ generator.normal(size=(8, 3)), axis=1)
D = generator.multinomial(6, truth) / 6
train, test = slice(0, 600), slice(600, None)

# %%
# Before and after
# ----------------

model = CalibratedLDL(AAKNN(n_neighbors=2), random_state=0).fit(X[train], D[train])
before, after = model.estimator_.predict(X[test]), model.predict(X[test])
print(f"chosen map: {model.method_}")
print(f"divergence on new rows: before {kullback_leibler(D[test], before):.3f}, ", end="")
print(f"after {kullback_leibler(D[test], after):.3f}")
display = CalibrationDisplay.from_predictions(D[test], {"before": before, "after": after}, label_names=["A", "B", "C"])
plt.show()

# %%
# In the triangle of all distributions the calibrated predictions move away from the edges.

figure, axes = plt.subplots(1, 2, figsize=(10, 4.6), layout="constrained")
for ax, (name, P) in zip(axes, {"before": before, "after": after}.items(), strict=True):
    TernaryDisplay.from_predictions(D[test], {name: P}, max_points=40, label_names=["A", "B", "C"], ax=ax)
plt.show()
