"""Claims of the paper about the time that its algorithms take, on the artificial dataset as there.

Times differ from run to run and from machine to machine; other tasks of a study may run beside them. A claim is
therefore decided only where times differ by a factor of two.
"""

import numpy as np

from skldl._typing import FloatArray
from skldl.data._spelling import plain
from skldl.experiments.output.board import SIX
from skldl.experiments.output.claims import FAILS, HOLDS, UNKNOWN, Verdict
from skldl.experiments.results import StudyResults

MUCH = 2.0
"""Times differ, and one of two algorithms is much faster, from this factor on."""
OPEN = "cannot be told from one run"
RULE = (
    f"A claim about time is decided only where times differ by a factor of {MUCH:.0f} or more: another run, beside "
    "other tasks, gives other times."
)


def check_time_claims(results: StudyResults) -> list[Verdict]:
    """Check what the paper says about training and test times on the artificial dataset, and add the other datasets.

    Times that were measured on another machine than most are left out.
    """
    known = {plain(name): name for name in SIX}
    columns = {known[plain(c)]: j for j, c in enumerate(results.candidates) if plain(c) in known}
    row = next((i for i, name in enumerate(results.datasets) if plain(name) == "artificial"), None)
    train, test = _times(results, "fit_seconds"), _times(results, "predict_seconds")
    speed = _speed(results, columns, train)
    if row is None or len(columns) < len(SIX):
        return [speed]
    training = {name: float(train[row, j]) for name, j in columns.items()}
    testing = {name: float(test[row, j]) for name, j in columns.items()}
    both = {name: training[name] + testing[name] for name in columns}
    return [
        _extreme("Training AA-BP takes longest", "Training", training, ["AA-BP"], most=True),
        _extreme("AA-kNN costs the most test time", "Test", testing, ["AA-kNN"], most=True),
        _extreme(
            "SA-BFGS and SA-IIS cost the same, least test time", "Test", testing, ["SA-BFGS", "SA-IIS"], same=True
        ),
        speed,
        _extreme("SA-BFGS and PT-Bayes are the most efficient", "Training and test", both, ["SA-BFGS", "PT-Bayes"]),
    ]


def _times(results: StudyResults, field: str) -> FloatArray:
    """Mean seconds of each dataset and candidate; NaN where a record comes from another machine than the header."""
    seconds = results.means(field)
    own = results.header["versions"]
    for record in results.evaluations:
        if record["versions"] != own:
            seconds[results.datasets.index(record["dataset"]), results.candidates.index(record["candidate"])] = np.nan
    return seconds


def _extreme(
    claim: str, what: str, seconds: dict[str, float], named: list[str], *, most: bool = False, same: bool = False
) -> Verdict:
    """Whether the named algorithms, and only they, take least or most, and, if asked, the same."""
    claim = f"{claim} (on the artificial dataset)."
    left_out = [name for name in seconds if np.isnan(seconds[name])]
    seconds = {name: value for name, value in seconds.items() if name not in left_out}
    if not set(named) < set(seconds):
        return Verdict(claim, UNKNOWN, f"No comparable time of {', '.join(left_out)}.")
    shown = ", ".join(f"{n} {1e3 * seconds[n]:.3g} ms" for n in sorted(seconds, key=seconds.__getitem__, reverse=most))
    cost = {name: 1 / value if most else value for name, value in seconds.items()}
    worst, rival = max(cost[name] for name in named), min(value for n, value in cost.items() if n not in named)
    verdict = HOLDS if MUCH * worst <= rival else FAILS if worst >= MUCH * rival else OPEN
    if same and worst >= MUCH * min(cost[name] for name in named):
        verdict = FAILS
    text = f"{what}: {shown}." + (f" Left out, as not comparable: {', '.join(left_out)}." if left_out else "")
    return Verdict(claim, verdict, text)


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
    evidence = (
        f"There SA-IIS takes {_factor(ratio)} as long; the claim holds from {MUCH:.0f} times on, and does not hold "
        "from equal times down."
    )
    if ratios:
        least, most = min(ratios, key=ratios.__getitem__), max(ratios, key=ratios.__getitem__)
        evidence += (
            f" On the {len(ratios)} other datasets it takes {_factor(ratios[least])} ({least}) to "
            f"{_factor(ratios[most])} ({most}) as long, median {_factor(float(np.median(list(ratios.values()))))}."
        )
    return Verdict(
        claim,
        HOLDS if ratio >= MUCH else FAILS if ratio <= 1 else OPEN,
        f"{evidence} Both are fitted with the setting that selection chose, SA-IIS often with few iterations and "
        "SA-BFGS to its optimum.",
    )


def _factor(ratio: float) -> str:
    return f"{ratio:.2f} times" if ratio < 10 else f"{ratio:,.0f} times"
