"""
Rankings that contradict each other: which distribution comes out?
==================================================================

Ten rankers look at each picture, list the labels they think relevant, best first, and stop. The rankings here are made:
each ranker sees the true degrees, drawn from Dirichlet(0.6, …, 0.6), through noise of his or her own and lists the
labels that seem to hold more than a tenth. From these lists `from_rankings` finds one distribution per picture, by its
convex program or by Plackett-Luce.
"""

import matplotlib.pyplot as plt
import numpy as np

from skldl.distributions import from_label_sets, from_rankings
from skldl.metrics import chebyshev

LABELS = ["plant", "sky", "cloud", "snow", "building", "water"]
NOISE = 0.8

# %%
# The rankings
# ------------


def rank(degrees, generator):
    """List the labels that seem to hold more than a tenth, best first."""
    seen = degrees * np.exp(NOISE * generator.normal(size=len(degrees)))
    seen /= seen.sum()
    return [LABELS[j] for j in np.argsort(-seen) if seen[j] > 0.1]


generator = np.random.default_rng(0)
truth = generator.dirichlet(np.full(len(LABELS), 0.6), 400)
rankings = [[rank(degrees, generator) for _ in range(10)] for degrees in truth]
for ranking in rankings[0][:4]:
    print(" > ".join(ranking))

# %%
# Five ways to distributions
# --------------------------
# Equal shares and Borda counts need no library; they stand here as yardsticks.


def borda(item):
    """Points for each place, c for the first, shared out."""
    points = np.array([sum(len(LABELS) - r.index(label) for r in item if label in r) for label in LABELS])
    return points / points.sum()


marked = [sorted({label for ranking in item for label in ranking}) for item in rankings]
methods = {
    "equal shares": from_label_sets(marked, classes=LABELS),
    "program": from_rankings(rankings, labels=LABELS),
    "program, margin 0.3": from_rankings(rankings, labels=LABELS, margin=0.3),
    "Borda counts": np.array([borda(item) for item in rankings]),
    "Plackett-Luce": from_rankings(rankings, labels=LABELS, method="plackett-luce"),
}
for name, D in methods.items():
    print(f"{name:20s} mean Chebyshev distance from the truth {chebyshev(truth, D):.3f}")

# %%
# Lists say which label comes first, not by how much, so no method gets all of the truth back. The program with its
# small default margin stays near equal shares, as the published distributions of Natural_Scene do; a larger margin
# spreads the degrees, and Plackett-Luce spreads them most. Borda counts do well on these data, which reward long lists
# that agree.

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.5), width_ratios=[1.4, 1], layout="constrained")
shown = int(np.argmax([len({tuple(r) for r in item}) + len(set().union(*item)) for item in rankings]))
width = 0.8 / (1 + len(methods))
for offset, (name, D) in enumerate([("truth", truth), *methods.items()]):
    colour = f"C{offset - 1}" if offset else "0.2"
    places = np.arange(len(LABELS)) + width * (offset - len(methods) / 2)
    left.bar(places, D[shown], width=width, label=name, color=colour)
left.set_xticks(range(len(LABELS)), LABELS)
left.set(ylabel="degree", title="One picture")
left.legend(frameon=False, fontsize=9)
for place, (name, D) in enumerate(methods.items()):
    if name in ("program", "program, margin 0.3", "Plackett-Luce"):
        right.plot(truth.ravel(), D.ravel(), ".", markersize=3, alpha=0.5, color=f"C{place}", label=name)
right.plot([0, 1], [0, 1], color="0.5", linestyle=":")
right.set(xlabel="true degree", ylabel="degree from the rankings", title="All pictures")
right.legend(frameon=False, markerscale=4)
plt.show()
