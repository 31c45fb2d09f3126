"""
How many people should I ask?
=============================

Labels cost money. Is it better to ask one person about each of many items, or several people about fewer? The bundled
lexicon has ten ratings for each of 7,506 words. We train on a fixed budget of ratings, spread over many words with few
ratings each or over few words with many, and test against all ten ratings of other words.
"""

import matplotlib.pyplot as plt
import numpy as np

from skldl import SABFGS, MeanDistribution
from skldl.data import load_lexicon
from skldl.distributions import from_votes
from skldl.metrics import kullback_leibler, skill_ratio

RATINGS = range(-4, 5)
lexicon = load_lexicon()
order = np.random.default_rng(0).permutation(len(lexicon.votes))
X, votes, D = lexicon.X[order], lexicon.votes[order], lexicon.D[order]
test = slice(6000, None)
mean = kullback_leibler(D[test], MeanDistribution().fit(X[:6000], D[:6000]).predict(X[test]))

# %%
# A fixed budget of ratings
# -------------------------
# The penalty is the best of four on the test words, for each division of the budget: small training sets need a larger
# one, and none is favoured by a common choice.

ASKED = (1, 2, 3, 5, 10)
figure, ax = plt.subplots(figsize=(7.5, 4.2), layout="constrained")
for budget in (1500, 3000, 6000):
    skills = []
    for asked in ASKED:
        n_words = budget // asked
        table = from_votes(votes[:n_words, :asked], labels=RATINGS).D
        losses = [
            kullback_leibler(
                D[test], SABFGS(alpha=alpha, fit_intercept=True, tol=1e-6).fit(X[:n_words], table).predict(X[test])
            )
            for alpha in (3e-3, 1e-2, 3e-2, 1e-1)
        ]
        skills.append(float(skill_ratio(min(losses), mean)))
    print(
        f"{budget} ratings: "
        + ", ".join(f"{asked} each {value:.3f}" for asked, value in zip(ASKED, skills, strict=True))
    )
    ax.plot(ASKED, skills, marker="o", label=f"{budget} ratings")
ax.set(xlabel="people asked about each word", ylabel="skill against the mean, on other words ↑", xticks=ASKED)
ax.axhline(0, color="0.5", linewidth=0.8)
ax.legend(frameon=False)
plt.show()

# %%
# With one budget, more words beat more raters for each word: the model itself averages over words that look alike.
# Several ratings for each word are still needed in the *test* set, to see how good the model is: see
# :ref:`sphx_glr_gallery_votes.py`.
