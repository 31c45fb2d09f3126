"""
Votes of several people: how far do they agree, and how good can a model be?
============================================================================

The bundled lexicon holds 7,506 tokens, each rated by ten people from -4 to 4. The votes become label distributions; the
noise ceiling says what a model that knew the distribution behind the ten votes would score against them. A model's
score is best read between two lines: the mean distribution, which knows nothing about the token, and that ceiling.
"""

import matplotlib.pyplot as plt
import numpy as np

from skldl import AAKNN, SABFGS, MeanDistribution
from skldl.data import load_lexicon
from skldl.distributions import from_votes
from skldl.metrics import PAPER_MEASURES, evaluate
from skldl.simplex import entropy
from skldl.uncertainty import explainable_share

RATINGS = range(-4, 5)
lexicon = load_lexicon()
order = np.random.default_rng(0).permutation(len(lexicon.votes))
X, ratings = lexicon.X[order], lexicon.votes[order]
votes = from_votes(ratings, labels=RATINGS)

# %%
# Agreement
# ---------
# Krippendorff's alpha is 1 for perfect agreement and 0 for chance. It is much higher where the order of the ratings
# counts, because people who disagree mostly choose neighbouring ratings.

for level in ("nominal", "ordinal", "interval"):
    print(f"alpha, {level:9s}{votes.alpha(level):.3f}")

words = [lexicon.tokens[i] for i in order]
by_entropy = [i for i in np.argsort(entropy(votes.D), kind="stable") if words[i].isalpha()]
figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
for offset, quantile in enumerate((0.05, 0.5, 0.99)):
    i = by_entropy[int(quantile * (len(by_entropy) - 1))]
    ax.bar(np.arange(-4, 5) + 0.27 * (offset - 1), votes.D[i], width=0.27, label=words[i])
ax.set(xlabel="rating", ylabel="share of the ten votes", xticks=RATINGS, title="Agreement differs by word")
ax.legend(frameon=False)
plt.show()

# %%
# Models between the mean and the ceiling
# ---------------------------------------
# The line "half for half" is what five raters score as a prediction for the other five: judged by five votes instead of
# ten, it is no ceiling for the models, but it needs no assumption about the votes.

test = np.arange(len(ratings)) % 5 == 0
models = {
    "mean distribution": MeanDistribution(),
    "SA-BFGS": SABFGS(alpha=1e-3, fit_intercept=True),
    "AA-kNN, k = 50": AAKNN(n_neighbors=50),
}
scores = {
    name: evaluate(votes.D[test], model.fit(X[~test], votes.D[~test]).predict(X[test]))
    for name, model in models.items()
}
ceiling = from_votes(ratings[test], labels=RATINGS).noise_ceiling()
scores["half for half"] = {name: value.split_half for name, value in ceiling.items()}
scores["noise ceiling"] = {name: value.ceiling for name, value in ceiling.items()}
print(f"{'':20s}" + "".join(f"{measure.title[:12]:>13s}{measure.arrow}" for measure in PAPER_MEASURES.values()))
for name, row in scores.items():
    print(f"{name:20s}" + "".join(f"{row[measure]:14.3f}" for measure in PAPER_MEASURES))

# %%
# The figure shows how much of the way from the mean to the ceiling each model goes.

figure, ax = plt.subplots(figsize=(7.5, 4), layout="constrained")
for place, (name, measure) in enumerate(PAPER_MEASURES.items()):
    start, end = scores["mean distribution"][name], scores["noise ceiling"][name]
    for colour, (model, marker) in enumerate({"SA-BFGS": "o", "AA-kNN, k = 50": "s"}.items()):
        loss, of_mean, floor = (float(measure.loss(value, len(RATINGS))) for value in (scores[model][name], start, end))
        share = explainable_share(loss, of_mean, floor)
        ax.plot(share, place, marker, markersize=8, color=f"C{colour}", label=None if place else model)
ax.axvline(0, color="0.5", linestyle=":")
ax.axvline(1, color="0.2", linestyle="--")
ax.set_yticks(range(len(PAPER_MEASURES)), [measure.title for measure in PAPER_MEASURES.values()])
ax.set(xlabel="0: mean distribution        1: noise ceiling")
ax.invert_yaxis()
ax.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, 1.13), ncols=2)
plt.show()
