"""
Feelings in a text: which ratings will its readers give?
========================================================

People read the same sentence and feel differently about it. The bundled tweets hold 4,200 texts, each rated by 20 to 99
people from -4 (very bad) to 4 (very good). We cut the texts into word n-grams, learn the distribution of the ratings,
and ask what readers would say about new sentences. (Sentence embeddings would serve as features as well; n-grams need
no other package.)
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import GroupShuffleSplit
from sklearn.pipeline import make_pipeline

from skldl import SABFGS, MeanDistribution
from skldl.data import load_tweets
from skldl.distributions import expected_value
from skldl.metrics import skill

tweets = load_tweets()
texts, D = np.array(tweets.tokens), tweets.D
RATINGS = np.arange(-4, 5)

# %%
# A pipeline from text to distribution
# ------------------------------------
# The estimator is an ordinary scikit-learn estimator, so that a vectorizer stands before it. Some texts are variants of
# one another ("Yay. Another good phone interview." and "YAY!!! …"): ``groups`` keeps them on one side of the split.

split = GroupShuffleSplit(test_size=0.25, random_state=0)
train, test = next(split.split(texts, D, groups=tweets.groups))
ngrams = TfidfVectorizer(ngram_range=(1, 2), min_df=5, sublinear_tf=True)
model = make_pipeline(ngrams, SABFGS(alpha=1e-4, fit_intercept=True))
model.fit(texts[train], D[train], sabfgs__sample_weight=tweets.n_votes[train])

P = model.predict(texts[test])
mean = MeanDistribution().fit(np.zeros((len(train), 1)), D[train]).predict(np.zeros((len(test), 1)))
found = skill(D[test], P, mean, counts=tweets.counts[test])
print(found)
print(f"share of what can be explained: {found.explained:.2f}")

# %%
# What readers would say
# ----------------------
# The words of the second sentence say little, so that its prediction is near the mean of all texts. The last sentence
# is mixed on purpose, and its prediction has mass on both sides.

sentences = [
    "I love this song, best day ever!",
    "The bus leaves at nine.",
    "This is horrible, I hate it.",
    "I love the plot but the acting was horrible.",
]
predicted = model.predict(sentences)
figure, axes = plt.subplots(2, 2, figsize=(9, 5), sharex=True, sharey=True, layout="constrained")
colours = plt.get_cmap("RdYlGn")((RATINGS + 4) / 8)
for ax, sentence, degrees in zip(axes.flat, sentences, predicted, strict=True):
    ax.bar(RATINGS, degrees, color=colours, edgecolor="0.4", linewidth=0.6)
    ax.set_title(sentence, fontsize=10)
    ax.axvline(expected_value(degrees[None], RATINGS)[0], color="0.2", linestyle="--", linewidth=1)
axes[0, 0].set(xticks=RATINGS)
figure.supxlabel("rating (dashed: expected rating)")
figure.supylabel("share of the readers")
plt.show()

# %%
# Which n-grams change the prediction?
# ------------------------------------
# The weights of a linear model can be read: the difference between the weights of the rating 3 and of the rating -3.

coefficients = model[-1].coef_
direction = coefficients[7] - coefficients[1]
place = {word: number for number, word in enumerate(ngrams.get_feature_names_out())}
words = [
    "hate",
    "horrible",
    "sad",
    "bad",
    "not",
    "no",
    "but",
    "the",
    "lol",
    "thank you",
    "good",
    "happy",
    "great",
    "love",
]
shown = sorted((direction[place[word]], word) for word in words if word in place)
weights = np.array([weight for weight, _ in shown])
figure, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
ax.barh([word for _, word in shown], weights, color=np.where(weights > 0, "#1b7837", "#b2182b"))
ax.set(xlabel="weight for the rating 3 minus weight for the rating -3")
plt.show()
