"""Votes of several people: how far do they agree, and how good can a model be at all?

The bundled lexicon holds 7,506 tokens, each rated by ten people from -4 to 4. The votes become label distributions; the
noise ceiling says what a model that knew the distribution behind the ten votes would score against them. A model's
score is best read between two lines: the mean distribution, which knows nothing about the token, and that ceiling. The
line "half for half" of the table is what five raters score as a prediction for the other five: judged by five votes
instead of ten, it is no ceiling for the models, but it needs no assumption about the votes.

Run: python examples/votes.py --output results/examples
"""

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from skldl import AAKNN, SABFGS, MeanDistribution
from skldl.data import load_lexicon
from skldl.distributions import from_votes
from skldl.metrics import PAPER_MEASURES, evaluate


def main(output: Path, n_rows: int | None = None) -> dict[str, dict[str, float]]:
    lexicon = load_lexicon()
    order = np.random.default_rng(0).permutation(len(lexicon.votes))[:n_rows]
    X, ratings = lexicon.X[order], lexicon.votes[order]
    votes = from_votes(ratings, labels=range(-4, 5))
    print(f"{len(ratings)} tokens, ten votes each. Krippendorff's alpha:")
    for level in ("nominal", "ordinal", "interval"):
        print(f"  {level:9s}{votes.alpha(level):.3f}")

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
    ceiling = from_votes(ratings[test], labels=range(-4, 5)).noise_ceiling()
    scores["half for half"] = {name: value.split_half for name, value in ceiling.items()}
    scores["noise ceiling"] = {name: value.ceiling for name, value in ceiling.items()}
    print_table(scores)
    draw(scores, votes.D, [lexicon.tokens[i] for i in order], output / "votes.png")
    return scores


def print_table(scores: dict[str, dict[str, float]]) -> None:
    print(f"{'':20s}" + "".join(f"{m.title[:12]:>13s}{m.arrow}" for m in PAPER_MEASURES.values()))
    for name, row in scores.items():
        print(f"{name:20s}" + "".join(f"{row[measure]:14.3f}" for measure in PAPER_MEASURES))


def draw(scores: dict[str, dict[str, float]], D: np.ndarray, tokens: list[str], path: Path) -> None:
    """Draw three tokens with their votes, and where the models stand between the mean and the ceiling."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), width_ratios=[1, 1.25], layout="constrained")
    spread = -(D * np.log(np.maximum(D, 1e-12))).sum(axis=1)
    candidates = [i for i in np.argsort(spread, kind="stable") if tokens[i].isalpha()]
    shown = [candidates[int(q * (len(candidates) - 1))] for q in (0.05, 0.5, 0.99)]
    for offset, i in enumerate(shown):
        left.bar(np.arange(-4, 5) + 0.27 * (offset - 1), D[i], width=0.27, label=tokens[i])
    left.set(xlabel="rating", ylabel="share of the ten votes", xticks=range(-4, 5), title="Agreement differs by token")
    left.legend(frameon=False)

    styles = {"SA-BFGS": "o", "AA-kNN, k = 50": "s"}
    for j, name in enumerate(PAPER_MEASURES):
        start, end = scores["mean distribution"][name], scores["noise ceiling"][name]
        for model, marker in styles.items():
            share = (scores[model][name] - start) / (end - start)
            right.plot(
                share, j, marker, markersize=8, color=f"C{list(styles).index(model)}", label=model if j == 0 else None
            )
    right.axvline(0, color="0.5", linestyle=":")
    right.axvline(1, color="0.2", linestyle="--")
    right.set_yticks(range(len(PAPER_MEASURES)), [measure.title for measure in PAPER_MEASURES.values()])
    right.set(xlabel="0: mean distribution        1: noise ceiling", title="How much of the way to the ceiling")
    right.invert_yaxis()
    right.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=3)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    plt.close(figure)
    print(f"Figure: {path}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("results/examples"))
    main(parser.parse_args().output)
