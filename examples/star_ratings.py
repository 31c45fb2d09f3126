"""
One star rating per item: does it help to spread it to its neighbours?
======================================================================

Often there is a single rating per item, and the next person would have given a similar one, not the same. Here each
token of the bundled lexicon keeps only the first of its ten ratings (from -4 to 4). A model learns from it, as it is or
spread to its neighbours, and is judged by the distribution of the other nine ratings, which it never saw.
"""

import matplotlib.pyplot as plt
import numpy as np

from skldl import SABFGS
from skldl.data import load_lexicon
from skldl.distributions import expected_value, from_neighbours, from_votes
from skldl.metrics import kullback_leibler

STARS = np.arange(-4, 5)

# %%
# From one rating to a distribution
# ---------------------------------
# `from_neighbours` gives each label the mass that a density around the rating has in the label's interval. The shape
# and the scale of the density are yours to choose.

figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
shapes = {"gaussian": 1.0, "triangular": 2.0, "laplace": 1.0}
for offset, (shape, scale) in enumerate(shapes.items()):
    D = from_neighbours([3], labels=STARS, scale=scale, shape=shape)[0]
    ax.bar(STARS + 0.27 * (offset - 1), D, width=0.27, label=f"{shape}, scale {scale:g}")
ax.set(xlabel="label", ylabel="degree", xticks=STARS, title="The rating 3, spread to its neighbours")
ax.legend(frameon=False)
plt.show()

# %%
# Does it help?
# -------------
# We train on 100 to 6,000 tokens with one rating each. The test tokens are the same 1,506 for every size.

lexicon = load_lexicon()
order = np.random.default_rng(0).permutation(len(lexicon.votes))
X, votes = lexicon.X[order], lexicon.votes[order]
others = from_votes(votes[:, 1:], labels=STARS).D
SIZES, SCALES = (100, 300, 1000, 3000, 6000), (0.0, 0.5, 1.0, 2.0)
test = slice(max(SIZES), None)
divergence = {scale: [] for scale in SCALES}
for size in SIZES:
    for scale in SCALES:
        D = from_neighbours(votes[:size, 0], labels=STARS, scale=scale)
        P = SABFGS(alpha=1e-3, fit_intercept=True).fit(X[:size], D).predict(X[test])
        divergence[scale].append(kullback_leibler(others[test], P))
        error = np.abs(expected_value(P, STARS) - expected_value(others[test], STARS)).mean()
        print(f"{size:5d} tokens, scale {scale:3.1f}: divergence {divergence[scale][-1]:.3f}, mean error {error:.3f}")

# %%
# Spreading helps most where there is little to learn from. With thousands of ratings, too wide a spread blurs what
# they show.

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for place, (scale, values) in enumerate(divergence.items()):
    name = f"gaussian, scale {scale:g}" if scale else "as it is"
    ax.plot(SIZES, values, marker="o", label=name, color=f"C{place - 1}" if scale else "0.4")
ax.set(xscale="log", xlabel="tokens to learn from, one rating each", ylabel="Kullback-Leibler divergence ↓")
ax.set_title("Against nine other ratings of tokens held out")
ax.legend(frameon=False)
plt.show()
