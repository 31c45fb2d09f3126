"""
Careless raters: who are they, and what does it cost to ignore them?
====================================================================

The bundled tweets hold the ratings of 20 to 99 people for each of 4,200 texts, from -4 to 4, but not who gave which. So
this example deals ten real ratings of each text to fifty made-up people, as a platform for annotation would: a text
belongs to a batch, and ten people rate the batch. Then it plants careless people, four of whom join each batch: some
answer at random, some nearly always 0, some two steps too low. The ratings that were not dealt out show what
is left of the damage.
"""

import matplotlib.pyplot as plt
import numpy as np

from skldl import SABFGS, MeanDistribution
from skldl.annotators import DawidSkene, rater_table
from skldl.data import load_tweets
from skldl.distributions import from_votes
from skldl.metrics import kullback_leibler, skill
from skldl.plots import RatersDisplay

LABELS = range(-4, 5)
BATCH, CAREFUL_EACH, CARELESS_EACH = 50, 10, 4
CAREFUL = [f"careful {i:02d}" for i in range(50)]
CARELESS = [f"{kind} {i}" for kind in ("random", "always 0", "severe") for i in range(4)]

# %%
# The votes
# ---------


def careless_answer(who, real, generator):
    if who.startswith("random"):
        return float(generator.integers(-4, 5))
    if who.startswith("always"):
        return 0.0 if generator.random() < 0.9 else real
    return max(real - 2.0, -4.0)


def deal(ratings, generator):
    """Deal real ratings to careful people, and add votes of careless ones; also the ratings that are left."""
    votes = {"text": [], "who": [], "rating": []}
    left = ratings.copy()
    for start in range(0, len(ratings), BATCH):
        careful = generator.permutation(CAREFUL)[:CAREFUL_EACH]
        careless = generator.permutation(CARELESS)[:CARELESS_EACH]
        for text in range(start, min(start + BATCH, len(ratings))):
            places = generator.permutation(np.flatnonzero(np.isfinite(ratings[text])))[:CAREFUL_EACH]
            left[text, places] = np.nan
            answers = dict(zip(careful, ratings[text, places], strict=True))
            answers |= {who: careless_answer(who, ratings[text, places[0]], generator) for who in careless}
            for who, rating in answers.items():
                votes["text"].append(text)
                votes["who"].append(who)
                votes["rating"].append(rating)
    return {name: np.array(column) for name, column in votes.items()}, left


tweets = load_tweets()
order = np.random.default_rng(0).permutation(len(tweets.votes))
votes, left = deal(tweets.votes[order], np.random.default_rng(1))
columns = {"item": "text", "annotator": "who", "label": "rating"}
print(f"{len(order)} texts, {len(votes['text'])} votes of {len(CAREFUL)} careful and {len(CARELESS)} careless raters")

# %%
# Who is careless?
# ----------------
# `DawidSkene` and `rater_table` see the votes alone.

model = DawidSkene("ordinal").fit(votes, labels=LABELS, **columns)
table = rater_table(model)
print(table)
for kind in ("careful", "random", "always 0", "severe"):
    rows = [row for row in table.rows() if row["rater"].startswith(kind)]
    means = {name: np.mean([row[name] for row in rows]) for name in ("informedness", "severity", "weight")}
    flagged = sum(bool(row["flags"]) for row in rows)
    line = ", ".join(f"{name} {value:5.2f}" for name, value in means.items())
    print(f"  {kind:10s}{len(rows):3d} raters: {line}; {flagged} flagged")

figure, ax = plt.subplots(figsize=(10, 5), layout="constrained")
RatersDisplay.from_model(model, table=table, ax=ax)
plt.show()

# %%
# What does it cost?
# ------------------
# A model learns from all votes alike, from votes weighted by the quality of the raters, from these smoothed, and from
# the posterior of Dawid and Skene's model, which estimates one true label and misses the disagreement. It is tested on
# other texts, against all of their real ratings. Skill is the share of the mean's divergence that the model removes.

plain = from_votes(votes, labels=LABELS, **columns)
weighted = from_votes(votes, labels=LABELS, weights=table, **columns)
smoothed = from_votes(votes, labels=LABELS, weights=table, smoothing="estimate", **columns)
targets = {
    "all votes alike": plain.D,
    "weighted votes": weighted.D,
    "weighted, smoothed": smoothed.D,
    "Dawid-Skene posterior": model.posterior_,
}
unseen = from_votes(left, labels=LABELS).D  # ratings that nobody above has seen
test = tweets.groups[order] % 4 == 0  # variants of one text stay together
X = tweets.X[order]
reference = MeanDistribution().fit(X[~test], unseen[~test]).predict(X[test])
skills = {}
print(f"{'':24s}{'distance from unseen votes':>28s}    skill of the model")
for name, D in targets.items():
    learned = SABFGS(alpha=1e-3, fit_intercept=True).fit(X[~test], D[~test], sample_weight=plain.n_votes[~test])
    skills[name] = skill(unseen[test], learned.predict(X[test]), reference)
    distance = np.abs(D - unseen).sum(axis=1).mean() / 2
    print(f"{name:24s}{distance:28.3f}    {skills[name]}")
print(f"The divergence of the mean distribution is {kullback_leibler(unseen[test], reference):.3f}.")

figure, ax = plt.subplots(figsize=(8, 3), layout="constrained")
places = np.arange(len(skills))
ax.barh(places, [float(value) for value in skills.values()], color="#0072B2", height=0.55)
ax.hlines(places, [value.low for value in skills.values()], [value.high for value in skills.values()], color="k")
ax.axvline(0, color="0.5", linewidth=1)
ax.set_yticks(places, skills)
ax.set(xlabel="skill against the mean distribution, on texts and ratings not seen before")
ax.invert_yaxis()
plt.show()
