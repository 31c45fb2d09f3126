"""Rankings that contradict each other: which distribution comes out?

Ten rankers look at each picture, list the labels they think relevant, best first, and stop. The rankings here are made:
each ranker sees the true degrees through noise of his or her own and lists the labels that seem to hold more than a
tenth. From these lists `from_rankings` finds one distribution per picture, by its convex program or by Plackett-Luce.
Lists say which label comes first, not by how much, so no method gets all of the truth back: the program with its small
default margin stays near equal shares, as the published distributions of Natural_Scene do; a larger margin spreads the
degrees, and Plackett-Luce spreads them most. Borda counts do well on these data, which reward long lists that agree.

Run: python examples/rankings.py --output results/examples
"""

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from skldl.distributions import from_label_sets, from_rankings
from skldl.metrics import chebyshev

LABELS = ["plant", "sky", "cloud", "snow", "building", "water"]


def make_rankings(n_items: int, noise: float, seed: int = 0) -> tuple[np.ndarray, list[list[list[str]]]]:
    """True distributions, and what ten rankers make of them."""
    generator = np.random.default_rng(seed)
    truth = generator.dirichlet(np.full(len(LABELS), 0.6), n_items)
    rankings = []
    for d in truth:
        item = []
        for _ in range(10):
            seen = d * np.exp(noise * generator.normal(size=len(d)))
            seen /= seen.sum()
            item.append([LABELS[j] for j in np.argsort(-seen) if seen[j] > 0.1])
        rankings.append(item)
    return truth, rankings


def borda(item: list[list[str]]) -> np.ndarray:
    """Points for each place, c for the first, shared out."""
    points = np.array([sum(len(LABELS) - r.index(label) for r in item if label in r) for label in LABELS])
    return points / points.sum()


def main(output: Path, n_rows: int = 400) -> dict[str, float]:
    truth, rankings = make_rankings(n_rows, noise=0.8)
    marked = [sorted({label for ranking in item for label in ranking}) for item in rankings]
    methods = {
        "equal shares": from_label_sets(marked, classes=LABELS),
        "program": from_rankings(rankings, labels=LABELS),
        "program, margin 0.3": from_rankings(rankings, labels=LABELS, margin=0.3),
        "Borda counts": np.array([borda(item) for item in rankings]),
        "Plackett-Luce": from_rankings(rankings, labels=LABELS, method="plackett-luce"),
    }
    distance = {name: chebyshev(truth, D) for name, D in methods.items()}
    for name, value in distance.items():
        print(f"{name:20s} mean Chebyshev distance from the truth {value:.3f}")
    draw(truth, methods, rankings, output / "rankings.png")
    return distance


def draw(truth: np.ndarray, methods: dict[str, np.ndarray], rankings: list[list[list[str]]], path: Path) -> None:
    """Draw one picture's rankings and distributions, and the recovered against the true degrees of all."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.5), width_ratios=[1.4, 1], layout="constrained")
    shown = int(np.argmax([len({tuple(r) for r in item}) + len(set().union(*item)) for item in rankings]))
    width = 0.8 / (1 + len(methods))
    for offset, (name, D) in enumerate([("truth", truth), *methods.items()]):
        colour = "0.2" if name == "truth" else f"C{offset - 1}"
        left.bar(
            np.arange(len(LABELS)) + width * (offset - len(methods) / 2),
            D[shown],
            width=width,
            label=name,
            color=colour,
        )
    left.set_xticks(range(len(LABELS)), LABELS)
    examples = "\n".join(" > ".join(ranking) for ranking in rankings[shown][:3])
    left.set(ylabel="degree", title="One picture")
    left.text(0.98, 0.97, f"{examples}\n…", transform=left.transAxes, ha="right", va="top", fontsize=8)
    left.legend(frameon=False, loc="upper left", fontsize=9)
    left.set_ylim(0, 1.35 * max(D[shown].max() for D in [truth, *methods.values()]))
    for j, (name, D) in enumerate(methods.items()):
        if name in ("program", "program, margin 0.3", "Plackett-Luce"):
            right.plot(truth.ravel(), D.ravel(), ".", markersize=3, alpha=0.5, color=f"C{j}", label=name)
    right.plot([0, 1], [0, 1], color="0.5", linestyle=":")
    right.set(xlabel="true degree", ylabel="degree from the rankings", title="All pictures")
    right.legend(frameon=False, markerscale=4)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    plt.close(figure)
    print(f"Figure: {path}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("results/examples"))
    main(parser.parse_args().output)
