"""The figures of docs/uncertainty.md: coverage by simulation and on real sets, noise floors, calibration, spread.

Usage: ``benchmarks/uncertainty.py [simulation] [truth] [sets] [floors] [bias] [calibration]``; all without words.
Set SKLDL_DATA to a folder with the paper's data; sets that are not found are left out.
"""

import sys
import warnings

import numpy as np
from scipy.special import softmax

from skldl import AAKNN, SABFGS, MeanDistribution
from skldl.data import load_dataset, load_lexicon, load_tweets
from skldl.exceptions import DataError
from skldl.metrics import MEASURES, evaluate, kullback_leibler
from skldl.uncertainty import CalibratedLDL, ConformalLDL, DirichletSpread, explainable_share, noise_floor

SETS = ("SJAFFE", "SBU_3DFE", "Yeast_alpha", "Yeast_spo5", "Natural_Scene")
WEIGHTS = np.random.default_rng(9).normal(size=(4, 3))
LINEAR = SABFGS(alpha=1e-3, fit_intercept=True)


def draw(seed: int, n_rows: int, concentration: float = 20) -> tuple[np.ndarray, np.ndarray]:
    """Rows of a linear softmax model with Dirichlet noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 4))
    D = np.maximum(rng.standard_gamma(concentration * softmax(X @ WEIGHTS, axis=1)), 1e-12)
    return X, D / D.sum(axis=1, keepdims=True)


def simulation(n_draws: int = 200) -> None:
    """Coverage at 90 % with 200 calibration rows (CV+: 200 rows in all)."""
    print("| method | score | coverage | mean radius |\n|---|---|---|---|")
    cases = [("split", score) for score in ("total_variation", "kullback_leibler", "label")]
    for method, score in [*cases, ("cv+", "total_variation"), ("cv+", "label")]:
        n_fit = 800 if method == "split" else 200
        inside, radius = [], []
        for seed in range(n_draws if method == "split" else n_draws // 4):
            X, D = draw(seed, n_fit + 200)
            model = ConformalLDL(LINEAR, method=method, conformity_score=score, random_state=seed).fit(
                X[:n_fit], D[:n_fit]
            )
            region = model.predict_region(X[n_fit:], 0.9)
            inside.append(region.contains(D[n_fit:]).mean())
            radius.append(region.radius.mean())
        print(f"| {method} | {score} | {np.mean(inside):.3f} | {np.mean(radius):.3f} |", flush=True)


def truth(n_draws: int = 100) -> None:
    """Coverage at 90 % on rows of votes: of the fractions of as many votes, and of the distribution behind them."""
    print(
        "| concentration | votes | covers | shares covered | truth covered | mean radius |\n|---|---|---|---|---|---|"
    )
    for concentration, n_votes in ((20, 5), (20, 20), (1e6, 5), (1e6, 20)):
        for covers in ("given", "true"):
            shares, behind, radius = [], [], []
            for seed in range(n_draws):
                X, D = draw(seed, 1000, concentration)
                counts = np.random.default_rng(seed).multinomial(n_votes, D)
                voted = counts / n_votes
                model = ConformalLDL(LINEAR, covers=covers, random_state=seed)
                region = model.fit(X[:800], voted[:800], counts=counts[:800]).predict_region(X[800:], 0.9)
                shares.append(region.contains(voted[800:]).mean())
                behind.append(region.contains(D[800:]).mean())
                radius.append(region.radius.mean())
            numbers = " | ".join(f"{np.mean(values):.3f}" for values in (shares, behind, radius))
            print(f"| {concentration:g} | {n_votes} | {covers} | {numbers} |", flush=True)


def known_sets() -> list:
    """The sets of the paper that are available."""
    found = []
    for name in SETS:
        try:
            found.append(load_dataset(name))
        except (DataError, LookupError, OSError):
            print(f"(not found: {name})")
    return found


def sets(n_splits: int = 20) -> None:
    """Coverage at 90 % on real sets, over random halves."""
    print("| set | split, TV | split, label | CV+, TV | radius (split, TV) |\n|---|---|---|---|---|")
    for data in known_sets():
        columns, radius = [], []
        for method, score in (("split", "total_variation"), ("split", "label"), ("cv+", "total_variation")):
            inside = []
            for seed in range(n_splits if method == "split" else 5):
                order = np.random.default_rng(seed).permutation(data.n_samples)[:800]
                train, test = np.array_split(order, 2)
                model = ConformalLDL(LINEAR, method=method, conformity_score=score, random_state=seed, n_folds=5)
                region = model.fit(data.X[train], data.D[train]).predict_region(data.X[test], 0.9)
                inside.append(region.contains(data.D[test]).mean())
                if score == "total_variation" and method == "split":
                    radius.append(region.radius.mean())
            columns.append(f"{np.mean(inside):.3f}")
        print(f"| {data.name} | {' | '.join(columns)} | {np.mean(radius):.3f} |", flush=True)


def floors() -> None:
    """Noise floors of the bundled sets, and the fraction that a simple model explains."""
    print("| set | votes | mean | SA-BFGS | floor | explained |\n|---|---|---|---|---|---|")
    for data in (load_lexicon(), load_tweets()):
        rows = np.random.default_rng(0).permutation(data.n_samples)[:2000]
        part = data.take(rows)
        train, test = np.arange(len(rows)) < len(rows) // 2, np.arange(len(rows)) >= len(rows) // 2
        losses = {}
        for name, model in (("mean", MeanDistribution()), ("linear", SABFGS(alpha=0.03, fit_intercept=True))):
            fitted = model.fit(part.X[train], part.D[train])
            losses[name] = kullback_leibler(part.D[test], fitted.predict(part.X[test]))
        floor = part.noise_floor(["kullback_leibler"])["kullback_leibler"]
        share = explainable_share(losses["linear"], losses["mean"], floor.value)
        print(
            f"| {data.name} | {floor.n_votes:.1f} | {losses['mean']:.4f} | {losses['linear']:.4f} | "
            f"{floor.value:.4f} to {floor.smoothed:.4f} | {share:.1%} |",
            flush=True,
        )
    print("\n| votes | true floor | estimate | (c − 1)/2m | bootstrap from the shares |\n|---|---|---|---|---|")
    for n_votes in (3, 5, 10, 20, 50):
        true, found, plugged = [], [], []
        for seed in range(10):
            rng = np.random.default_rng(seed)
            truth = rng.dirichlet(np.full(5, 0.5), 500)
            counts = rng.multinomial(n_votes, truth)
            many = np.repeat(truth, 20, axis=0)
            true.append(kullback_leibler(rng.multinomial(n_votes, many) / n_votes, many))
            found.append(noise_floor(counts, ["kullback_leibler"], random_state=seed)["kullback_leibler"].value)
            shares = np.repeat(counts / n_votes, 20, axis=0)
            plugged.append(kullback_leibler(rng.multinomial(n_votes, shares) / n_votes, shares))
        numbers = (np.mean(true), np.mean(found), 4 / (2 * n_votes), np.mean(plugged))
        print(f"| {n_votes} | {' | '.join(f'{v:.4f}' for v in numbers)} |", flush=True)


def true_distributions(kind: str, n_rows: int, rng: np.random.Generator) -> np.ndarray:
    """Rows of five labels (nearly unanimous: six): near the corners, bells on a scale, sharp and flat ones in turn."""
    if kind == "nearly unanimous":
        rows = np.full((n_rows, 6), 0.01)
        rows[np.arange(n_rows), rng.integers(0, 6, n_rows)] = 0.95
        return rows
    if kind == "softmax of 3 × normal":
        return softmax(3 * rng.normal(size=(n_rows, 5)), axis=1)
    if kind == "near the corners":
        return rng.dirichlet(np.full(5, 0.2), n_rows)
    if kind == "bells":
        offset = (np.arange(5) - rng.uniform(0, 4, n_rows)[:, None]) / rng.uniform(0.7, 2, n_rows)[:, None]
        return softmax(-0.5 * offset**2, axis=1)
    sharp, flat = rng.dirichlet([20, 1, 1, 0.2, 0.2], n_rows), rng.dirichlet(np.full(5, 30.0), n_rows)
    return np.where((np.arange(n_rows) % 2 == 0)[:, None], sharp, flat)


def bias(n_tables: int = 10) -> None:
    """Relative error of both ends of the noise floor of several measures, mean over tables of 400 rows."""
    names = ("kullback_leibler", "chebyshev", "clark", "canberra", "cosine", "intersection")
    print(f"| truth | votes | {' | '.join(names)} |\n|---|---|{'---|' * len(names)}")
    for kind in ("near the corners", "bells", "sharp and flat", "softmax of 3 × normal", "nearly unanimous"):
        for n_votes in (3, 10, 30):
            errors = []
            for seed in range(n_tables):
                rng = np.random.default_rng(seed)
                truth = true_distributions(kind, 400, rng)
                found = noise_floor(rng.multinomial(n_votes, truth), names, random_state=seed)
                many = np.repeat(truth, 20, axis=0)
                shares = rng.multinomial(n_votes, many) / n_votes
                ends = []
                for name, true in evaluate(shares, many, measures=names).items():
                    best = float(MEASURES[name].higher_is_better)
                    ends.append([(best - end) / (best - true) - 1 for end in (found[name].value, found[name].smoothed)])
                errors.append(ends)
            cells = " | ".join(f"{low:+.0%}, {high:+.0%}" for low, high in np.mean(errors, axis=0))
            print(f"| {kind} | {n_votes} | {cells} |", flush=True)


def calibration(n_splits: int = 5) -> None:
    """Held-out divergence before and after calibration, and the error of the Dirichlet spread."""
    print("| set | model | before | after | map | coverage error of the spread |\n|---|---|---|---|---|---|")
    for data in known_sets():
        for name, model in (
            ("AA-kNN, k = 3", AAKNN(3)),
            ("SA-BFGS, alpha 1e-6", SABFGS(alpha=1e-6, fit_intercept=True)),
        ):
            if data.n_features > 250 and "SA-BFGS" in name:
                continue  # each of its fits takes minutes
            before, after, chosen, error = [], [], [], []
            for seed in range(n_splits):
                order = np.random.default_rng(seed).permutation(data.n_samples)[:800]
                train, test = np.array_split(order, 2)
                fitted = CalibratedLDL(model, random_state=seed).fit(data.X[train], data.D[train])
                before.append(kullback_leibler(data.D[test], fitted.estimator_.predict(data.X[test])))
                after.append(kullback_leibler(data.D[test], fitted.predict(data.X[test])))
                chosen.append(fitted.method_)
                spread = DirichletSpread(fitted, random_state=seed).fit(data.X[train], data.D[train])
                error.append(spread.coverage(data.X[test], data.D[test]).error)
            word = max(set(chosen), key=chosen.count)
            print(
                f"| {data.name} | {name} | {np.mean(before):.4f} | {np.mean(after):.4f} | {word} | "
                f"{np.mean(error):.3f} |",
                flush=True,
            )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    steps = {step.__name__: step for step in (simulation, truth, sets, floors, bias, calibration)}
    for word in sys.argv[1:] or steps:
        print(f"\n{word}")
        steps[word]()
