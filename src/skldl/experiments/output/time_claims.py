"""Claims of the paper about the time that its algorithms take, on the artificial dataset as there.

Times differ from run to run and from machine to machine; other tasks of a study may run beside them.
"""

import numpy as np

from skldl._typing import FloatArray
from skldl.data._spelling import plain
from skldl.experiments.output.board import SIX
from skldl.experiments.output.claims import FAILS, HOLDS, UNKNOWN, Verdict
from skldl.experiments.results import StudyResults

MUCH = 2.0
"""Much faster is to take less than a half of the time."""


def check_time_claims(results: StudyResults) -> list[Verdict]:
    """Check what the paper says about training and test times on the artificial dataset, and add the other datasets."""
    known = {plain(name): name for name in SIX}
    columns = {known[plain(c)]: j for j, c in enumerate(results.candidates) if plain(c) in known}
    row = next((i for i, name in enumerate(results.datasets) if plain(name) == "artificial"), None)
    train, test = results.means("fit_seconds"), results.means("predict_seconds")
    speed = _speed(results, columns, train)
    if row is None or len(columns) < len(SIX):
        return [speed]
    there = {name: (train[row, j], test[row, j], train[row, j] + test[row, j]) for name, j in columns.items()}
    if np.isnan(list(there.values())).any():
        return [speed]
    return [
        _extreme("Training AA-BP takes longest.", "Training", {n: t[0] for n, t in there.items()}, ["AA-BP"], -1),
        _extreme("AA-kNN costs the most test time.", "Test", {n: t[1] for n, t in there.items()}, ["AA-kNN"], -1),
        _extreme(
            "SA-BFGS and SA-IIS cost the least test time.",
            "Test",
            {n: t[1] for n, t in there.items()},
            ["SA-BFGS", "SA-IIS"],
        ),
        speed,
        _extreme(
            "SA-BFGS and PT-Bayes are the most efficient.",
            "Training and test",
            {n: t[2] for n, t in there.items()},
            ["SA-BFGS", "PT-Bayes"],
        ),
    ]


def _extreme(claim: str, what: str, seconds: dict[str, float], named: list[str], sign: int = 1) -> Verdict:
    """Whether the named algorithms are those that take least, or most with the sign -1."""
    order = sorted(seconds, key=lambda name: sign * seconds[name])
    shown = ", ".join(f"{name} {1e3 * seconds[name]:.3g} ms" for name in order)
    return Verdict(
        f"{claim[:-1]} (on the artificial dataset).",
        HOLDS if set(order[: len(named)]) == set(named) else FAILS,
        f"{what}: {shown}.",
    )


def _speed(results: StudyResults, columns: dict[str, int], train: FloatArray) -> Verdict:
    claim = "Training SA-BFGS is much faster than training SA-IIS (on the artificial dataset)."
    if not {"SA-BFGS", "SA-IIS"} <= set(columns):
        return Verdict(claim, UNKNOWN, "SA-BFGS or SA-IIS did not take part.")
    quotients = train[:, columns["SA-IIS"]] / train[:, columns["SA-BFGS"]]
    ratios = {name: ratio for name, ratio in zip(results.datasets, quotients, strict=True) if np.isfinite(ratio)}
    artificial = next((name for name in ratios if plain(name) == "artificial"), None)
    if artificial is None:
        return Verdict(claim, UNKNOWN, "The artificial dataset did not take part, or one of the two failed there.")
    ratio = ratios.pop(artificial)
    evidence = f"There SA-IIS takes {_times(ratio)} as long; the claim counts as kept from {MUCH:.0f} times."
    if ratios:
        least, most = min(ratios, key=ratios.__getitem__), max(ratios, key=ratios.__getitem__)
        evidence += (
            f" On the {len(ratios)} other datasets it takes {_times(ratios[least])} ({least}) to "
            f"{_times(ratios[most])} ({most}) as long, median {_times(float(np.median(list(ratios.values()))))}."
        )
    return Verdict(
        claim,
        HOLDS if ratio >= MUCH else FAILS,
        f"{evidence} Both are fitted with the setting that selection chose, SA-IIS often with few iterations and "
        "SA-BFGS to its optimum.",
    )


def _times(ratio: float) -> str:
    return f"{ratio:.2f} times" if ratio < 10 else f"{ratio:,.0f} times"
