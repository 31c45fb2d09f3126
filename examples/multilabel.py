"""Sets of labels: a label distribution learner as multi-label classifier, beside binary relevance.

Two problems. *Made*: scikit-learn's ``make_multilabel_classification``. *Digits*: scikit-learn's bundled pictures of
handwritten digits, one to three of them laid over each other (the brighter pixel wins): which digits are there?
Train and test pictures are made from different digits. Each learner comes three times: as binary relevance (one model
per label), inside `LDLClassifier`, and there with degrees enhanced by propagation. None of them is tuned.

Run: python examples/multilabel.py --output results/examples
"""

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits, make_multilabel_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, hamming_loss, label_ranking_average_precision_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skldl import AAKNN, SABFGS, LDLClassifier
from skldl.distributions import PropagationEnhancer

MEASURES = {
    "micro F1 ↑": lambda Y, P, S: f1_score(Y, P, average="micro"),
    "Hamming loss ↓": lambda Y, P, S: hamming_loss(Y, P),
    "ranking precision ↑": lambda Y, P, S: label_ranking_average_precision_score(Y, S),
}


def overlay(images: np.ndarray, digits: np.ndarray, n_rows: int, generator: np.random.Generator) -> tuple:
    """Lay one to three pictures over each other; the set of labels is the set of their digits."""
    X, Y = np.zeros((n_rows, images.shape[1])), np.zeros((n_rows, 10), dtype=int)
    for row in range(n_rows):
        chosen = generator.choice(len(images), size=generator.integers(1, 4), replace=False)
        X[row] = images[chosen].max(axis=0)
        Y[row, digits[chosen]] = 1
    return X, Y


def problems(n_rows: int, seed: int) -> dict[str, tuple]:
    """Train and test sets of both problems: X_train, Y_train, X_test, Y_test."""
    generator = np.random.default_rng(seed)
    X, Y = make_multilabel_classification(2 * n_rows, n_features=20, n_classes=6, random_state=seed)
    images, digits = load_digits(return_X_y=True)
    order = generator.permutation(len(images))
    half = len(order) // 2
    return {
        "made": (X[:n_rows], Y[:n_rows], X[n_rows:], Y[n_rows:]),
        "digits": (
            *overlay(images[order[:half]], digits[order[:half]], n_rows, generator),
            *overlay(images[order[half:]], digits[order[half:]], n_rows, generator),
        ),
    }


def models() -> dict[str, object]:
    linear = SABFGS(alpha=1e-3, fit_intercept=True)
    return {
        "logistic, binary relevance": OneVsRestClassifier(LogisticRegression(max_iter=5000)),
        "SA-BFGS, LDL": LDLClassifier(linear),
        "SA-BFGS, LDL, enhanced": LDLClassifier(linear, enhance=PropagationEnhancer()),
        "kNN, binary relevance": KNeighborsClassifier(10),
        "AA-kNN, LDL": LDLClassifier(AAKNN(10)),
        "AA-kNN, LDL, enhanced": LDLClassifier(AAKNN(10), enhance=PropagationEnhancer()),
    }


def probabilities(model: object, X: np.ndarray) -> np.ndarray:
    """Probability of each label; some classifiers return one array per label."""
    P = model.predict_proba(X)
    return np.column_stack([p[:, 1] if p.shape[1] == 2 else np.zeros(len(X)) for p in P]) if isinstance(P, list) else P


def main(output: Path, n_rows: int = 800, n_repeats: int = 5) -> dict[str, dict[str, np.ndarray]]:
    results: dict[str, dict[str, np.ndarray]] = {}
    for seed in range(n_repeats):
        for problem, (X_train, Y_train, X_test, Y_test) in problems(n_rows, seed).items():
            for name, classifier in models().items():
                model = make_pipeline(StandardScaler(), classifier).fit(X_train, Y_train)
                P, S = model.predict(X_test), probabilities(model, X_test)
                row = [measure(Y_test, P, S) for measure in MEASURES.values()]
                results.setdefault(problem, {}).setdefault(name, np.empty((n_repeats, len(MEASURES))))[seed] = row
    for problem, rows in results.items():
        print(
            f"{problem}: mean ± standard deviation over {n_repeats} repeats\n{'':28s}"
            + "".join(f"{m:>20s}" for m in MEASURES)
        )
        for name, values in rows.items():
            cells = (f"{m:.3f} ± {s:.3f}" for m, s in zip(values.mean(axis=0), values.std(axis=0), strict=True))
            print(f"{name:28s}" + "".join(f"{cell:>20s}" for cell in cells))
    draw(results, output / "multilabel.png")
    return results


def draw(results: dict[str, dict[str, np.ndarray]], path: Path) -> None:
    figure, axes = plt.subplots(
        len(results), len(MEASURES), figsize=(11, 5.5), sharey=True, layout="constrained", squeeze=False
    )
    for row, (problem, scores) in enumerate(results.items()):
        for column, measure in enumerate(MEASURES):
            axis = axes[row, column]
            for place, values in enumerate(scores.values()):
                mean, spread = values[:, column].mean(), values[:, column].std()
                axis.errorbar(mean, place, xerr=spread, fmt="o" if place < 3 else "s", color=f"C{place % 3}", capsize=3)
            axis.set_title(f"{problem}: {measure}", fontsize=10)
            axis.grid(axis="x", alpha=0.3)
            axis.axhline(2.5, color="0.8", linewidth=0.8)
        axes[row, 0].set_yticks(range(len(scores)), list(scores))
    axes[0, 0].invert_yaxis()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    plt.close(figure)
    print(f"Figure: {path}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("results/examples"))
    main(parser.parse_args().output)
