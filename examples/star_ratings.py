"""One star rating per item: does it help to spread it to its neighbours?

Often there is a single rating per item, and the next person would have given a similar one, not the same. Here each
token of the bundled lexicon keeps only the first of its ten ratings (from -4 to 4). A model learns from it, as it is or
spread to its neighbours, and is judged by the distribution of the other nine ratings, which it never saw. Spreading
helps most where there is little to learn from; with thousands of ratings, too wide a spread blurs what they show.

Run: python examples/star_ratings.py --output results/examples
"""

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from skldl import SABFGS
from skldl.data import load_lexicon
from skldl.distributions import expected_value, from_neighbours, from_votes
from skldl.metrics import kullback_leibler

STARS = np.arange(-4, 5)
SCALES = (0.0, 0.5, 1.0, 2.0)
SIZES = (100, 300, 1000, 3000, 6000)


def main(output: Path, sizes: tuple[int, ...] = SIZES) -> dict[float, list[float]]:
    lexicon = load_lexicon()
    order = np.random.default_rng(0).permutation(len(lexicon.votes))
    X, votes = lexicon.X[order], lexicon.votes[order]
    others = from_votes(votes[:, 1:], labels=STARS).D
    test = slice(max(SIZES), None)
    print("Kullback-Leibler divergence from the other nine ratings, and mean error of the expected rating:")
    results: dict[float, list[float]] = {scale: [] for scale in SCALES}
    for size in sizes:
        for scale in SCALES:
            D = from_neighbours(votes[:size, 0], labels=STARS, scale=scale)
            P = SABFGS(alpha=1e-3, fit_intercept=True).fit(X[:size], D).predict(X[test])
            results[scale].append(kullback_leibler(others[test], P))
            error = np.abs(expected_value(P, STARS) - expected_value(others[test], STARS)).mean()
            print(f"  {size:5d} tokens, scale {scale:3.1f}: {results[scale][-1]:.3f}   {error:.3f}")
    draw(sizes, results, output / "star_ratings.png")
    return results


def draw(sizes: tuple[int, ...], results: dict[float, list[float]], path: Path) -> None:
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    shapes = {"gaussian": 1.0, "triangular": 2.0, "laplace": 1.0}
    for offset, (shape, scale) in enumerate(shapes.items()):
        D = from_neighbours([3], labels=STARS, scale=scale, shape=shape)[0]
        left.bar(STARS + 0.27 * (offset - 1), D, width=0.27, label=f"{shape}, scale {scale:g}")
    left.set(xlabel="label", ylabel="degree", xticks=STARS, title="The rating 3, spread to its neighbours")
    left.legend(frameon=False)
    for j, (scale, values) in enumerate(results.items()):
        label = f"gaussian, scale {scale:g}" if scale else "as it is"
        right.plot(sizes, values, marker="o", label=label, color="0.4" if not scale else f"C{j - 1}")
    right.set(xscale="log", xlabel="tokens to learn from, one rating each", ylabel="Kullback-Leibler divergence ↓")
    right.set_title("Against nine other ratings, tokens held out")
    right.legend(frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    plt.close(figure)
    print(f"Figure: {path}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("results/examples"))
    main(parser.parse_args().output)
