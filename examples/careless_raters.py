"""Votes of careful and careless raters: find the careless ones, weigh the votes, and learn from the result.

The bundled tweets hold the ratings of 20 to 99 people for each of 4,200 texts, from -4 to 4, but not who gave which. So
this example deals ten real ratings of each text to fifty made-up people, as a platform for annotation would: a text
belongs to a batch, and ten people rate the batch. Then it plants careless people, four of whom join each batch: some
answer at random, some nearly always 0, some two steps too low. The ratings that were not dealt out show what
is left of the damage.

1. `DawidSkene` and `rater_table` see the votes alone and say who is careless.
2. `from_votes` makes distributions: from all votes, and from votes weighted by the quality of the raters. The posterior
   of Dawid and Skene's model stands beside them: it estimates one true label, and misses the disagreement.
3. A model learns from each of these; it is tested on other texts, against all of their real ratings.

Run: python examples/careless_raters.py --output results/examples
"""

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from skldl import SABFGS, MeanDistribution
from skldl.annotators import DawidSkene, RaterTable, rater_table
from skldl.data import load_tweets
from skldl.distributions import from_votes
from skldl.metrics import Skill, kullback_leibler, skill
from skldl.plots import RatersDisplay, style

LABELS = range(-4, 5)
BATCH, CAREFUL_EACH, CARELESS_EACH = 50, 10, 4
CAREFUL = [f"careful {i:02d}" for i in range(50)]
CARELESS = [f"{kind} {i}" for kind in ("random", "always 0", "severe") for i in range(4)]


def deal(ratings: np.ndarray, generator: np.random.Generator) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Deal real ratings to careful people, and add votes of careless ones; also the ratings that are left."""
    votes: dict[str, list] = {"text": [], "who": [], "rating": []}
    left = ratings.copy()
    for start in range(0, len(ratings), BATCH):
        rows = np.arange(start, min(start + BATCH, len(ratings)))
        careful = generator.permutation(CAREFUL)[:CAREFUL_EACH]
        careless = generator.permutation(CARELESS)[:CARELESS_EACH]
        for text in rows:
            places = generator.permutation(np.flatnonzero(np.isfinite(ratings[text])))[:CAREFUL_EACH]
            left[text, places] = np.nan
            answers = dict(zip(careful, ratings[text, places], strict=True))
            answers |= {who: careless_answer(who, ratings[text, places[0]], generator) for who in careless}
            for who, rating in answers.items():
                votes["text"].append(text)
                votes["who"].append(who)
                votes["rating"].append(rating)
    return {name: np.array(column) for name, column in votes.items()}, left


def careless_answer(who: str, real: float, generator: np.random.Generator) -> float:
    if who.startswith("random"):
        return float(generator.integers(-4, 5))
    if who.startswith("always"):
        return 0.0 if generator.random() < 0.9 else real
    return max(real - 2.0, -4.0)


def main(output: Path, n_rows: int | None = None) -> dict[str, Skill]:
    tweets = load_tweets()
    order = np.random.default_rng(0).permutation(len(tweets.votes))[:n_rows]
    votes, left = deal(tweets.votes[order], np.random.default_rng(1))
    columns = {"item": "text", "annotator": "who", "label": "rating"}
    print(
        f"{len(order)} texts, {len(votes['text'])} votes of {len(CAREFUL)} careful and {len(CARELESS)} careless raters"
    )

    model = DawidSkene("ordinal").fit(votes, labels=LABELS, **columns)
    table = rater_table(model)
    report_raters(table)

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
    groups = tweets.groups[order]
    test = groups % 4 == 0  # variants of one text stay together
    X = tweets.X[order]
    reference = MeanDistribution().fit(X[~test], unseen[~test]).predict(X[test])
    skills = {}
    print(f"{'':24s}{'distance from unseen votes':>28s}    skill of the model")
    for name, D in targets.items():
        learned = SABFGS(alpha=1e-3, fit_intercept=True).fit(X[~test], D[~test], sample_weight=plain.n_votes[~test])
        skills[name] = skill(unseen[test], learned.predict(X[test]), reference)
        distance = np.abs(D - unseen).sum(axis=1).mean() / 2
        print(f"{name:24s}{distance:28.3f}    {skills[name]}")
    mean = kullback_leibler(unseen[test], reference)
    print(f"Skill is the share of the mean's Kullback-Leibler divergence, {mean:.3f}, that the model removes.")
    draw(model, table, skills, output / "careless_raters.png")
    return skills


def report_raters(table: RaterTable) -> None:
    print(table)
    for kind in ("careful", "random", "always 0", "severe"):
        rows = [row for row in table.rows() if row["rater"].startswith(kind)]
        means = {name: np.mean([row[name] for row in rows]) for name in ("informedness", "severity", "weight")}
        flagged = sum(bool(row["flags"]) for row in rows)
        words = ", ".join(f"{name} {value:5.2f}" for name, value in means.items())
        print(f"  {kind:10s}{len(rows):3d} raters: {words}; {flagged} flagged")


def draw(model: DawidSkene, table: RaterTable, skills: dict[str, Skill], path: Path) -> None:
    """Draw the raters, and what the models learned."""
    with style():
        figure = plt.figure(figsize=(10, 7.2), layout="constrained")
        above, below = figure.add_gridspec(2, 1, height_ratios=[2.2, 1]).subplots()
    RatersDisplay.from_model(model, table=table, ax=above)
    places = np.arange(len(skills))
    below.barh(places, [float(value) for value in skills.values()], color="#0072B2", height=0.55)
    below.hlines(places, [value.low for value in skills.values()], [value.high for value in skills.values()], color="k")
    below.axvline(0, color="0.5", linewidth=1)
    below.set_yticks(places, skills)
    below.set(xlabel="skill against the mean distribution, on texts and ratings not seen before")
    below.invert_yaxis()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    plt.close(figure)
    print(f"Figure: {path}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("results/examples"))
    main(parser.parse_args().output)
