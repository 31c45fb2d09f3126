"""Claims of the paper about the time that its algorithms take, on the artificial dataset as in the paper.

Times differ between runs and machines, and other tasks of a study may run at the same time. A claim is therefore
decided only if times differ by a factor of two.
"""

import numpy as np

from comparison.board import SIX
from comparison.claims import FAILS, HOLDS, UNKNOWN, Verdict
from skldl.experiments.results import StudyResults
from skldl.utils.spelling import plain
from skldl.utils.typing import FloatArray

MUCH = 2.0
"""An algorithm counts as faster than another from this factor on; chosen by hand."""
OPEN = "undecided from one run"
RULE = (
    f"A claim about time is decided only if times differ by a factor of {MUCH:.0f} or more, because times vary from "
    "run to run. The claim that one algorithm is much faster than another is also rejected if it is not faster at all. "
    "Times that were measured with other versions than those of the study are not compared."
)
PRINTED = {
    "PT-Bayes": (22, 45),
    "PT-SVM": (391, 1153),
    "AA-kNN": (0, 79961),
    "AA-BP": (101568, 149),
    "SA-IIS": (1168, 33),
    "SA-BFGS": (187, 33),
}
"""Milliseconds of training and test in the paper's table of the artificial dataset."""


def check_time_claims(results: StudyResults) -> list[Verdict]:
    """Check the paper's claims on training and test times on the artificial dataset, with those of other datasets."""
    known = {plain(name): name for name in SIX}
    columns = {known[plain(c)]: j for j, c in enumerate(results.candidates) if plain(c) in known}
    row = next((i for i, name in enumerate(results.datasets) if plain(name) == "artificial"), None)
    train, test = _times(results, "fit_seconds"), _times(results, "predict_seconds")
    speed = _speed(results, columns, train)
    if row is None or len(columns) < len(SIX):
        return [speed]
    ours = {name: (1e3 * train[row, j], 1e3 * test[row, j]) for name, j in columns.items()}
    return [
        _extreme("Training AA-BP takes longest", ours, ["AA-BP"], "training", most=True),
        _extreme("AA-kNN costs the most test time", ours, ["AA-kNN"], "test", most=True),
        _extreme("SA-BFGS and SA-IIS cost the same, least test time", ours, ["SA-BFGS", "SA-IIS"], "test", same=True),
        speed,
        _extreme("SA-BFGS and PT-Bayes are the most efficient", ours, ["SA-BFGS", "PT-Bayes"], "training and test"),
    ]


def _times(results: StudyResults, field: str) -> FloatArray:
    """Mean seconds of each dataset and candidate; NaN where a record comes from other versions than the header's."""
    seconds = results.means(field)
    own = results.header["versions"]
    for record in results.evaluations:
        if record["versions"] != own:
            seconds[results.datasets.index(record["dataset"]), results.candidates.index(record["candidate"])] = np.nan
    return seconds


def _extreme(
    claim: str,
    times: dict[str, tuple[float, float]],
    named: list[str],
    what: str,
    *,
    most: bool = False,
    same: bool = False,
) -> Verdict:
    """Check whether the named algorithms, and no others, take the least or most time and, if ``same``, equal times."""
    parts = {"training": [0], "test": [1], "training and test": [0, 1]}[what]
    ours, printed = ({name: sum(pair[i] for i in parts) for name, pair in some.items()} for some in (times, PRINTED))
    claim = f"{claim} (on the artificial dataset)."
    left_out = [name for name, value in ours.items() if np.isnan(value)]
    ours = {name: value for name, value in ours.items() if name not in left_out}
    verdict, evidence = UNKNOWN, ""
    if set(named) < set(ours):
        verdict = _judge(ours, named, most=most, same=same)
        evidence = f"Here {what}: {_show(ours, most=most)}. "
    if left_out:
        verdict = FAILS if verdict == FAILS else UNKNOWN  # the claim is about all six
        evidence += f"No time that can be compared: {', '.join(left_out)}. "
    paper = _judge(printed, named, most=most, same=same)
    return Verdict(claim, verdict, f"{evidence}Printed in the paper: {_show(printed, most=most)}: {paper}.")


def _judge(times: dict[str, float], named: list[str], *, most: bool, same: bool) -> str:
    cost = {name: (1 / value if value else np.inf) if most else value for name, value in times.items()}
    worst, rival = max(cost[name] for name in named), min(value for name, value in cost.items() if name not in named)
    if worst >= MUCH * rival or (same and worst >= MUCH * min(cost[name] for name in named)):
        return FAILS
    return HOLDS if MUCH * worst <= rival else OPEN


def _show(times: dict[str, float], *, most: bool) -> str:
    names = sorted(times, key=times.__getitem__, reverse=most)
    return ", ".join(f"{name} {times[name]:{',.0f' if times[name] >= 100 else '.3g'}} ms" for name in names)


def _speed(results: StudyResults, columns: dict[str, int], train: FloatArray) -> Verdict:
    claim = "Training SA-BFGS is much faster than training SA-IIS (on the artificial dataset)."
    if not {"SA-BFGS", "SA-IIS"} <= set(columns):
        return Verdict(claim, UNKNOWN, "SA-BFGS or SA-IIS did not take part.")
    quotients = train[:, columns["SA-IIS"]] / train[:, columns["SA-BFGS"]]
    ratios = {name: ratio for name, ratio in zip(results.datasets, quotients, strict=True) if np.isfinite(ratio)}
    artificial = next((name for name in ratios if plain(name) == "artificial"), None)
    if artificial is None:
        return Verdict(
            claim,
            UNKNOWN,
            "The artificial dataset did not take part, or one of the two failed there, or their times cannot be "
            "compared.",
        )
    ratio = ratios.pop(artificial)
    evidence = f"There SA-IIS takes {_factor(ratio)} as long, by the printed times {_factor(_PRINTED_RATIO)}."
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


_PRINTED_RATIO = PRINTED["SA-IIS"][0] / PRINTED["SA-BFGS"][0]


def _factor(ratio: float) -> str:
    return f"{ratio:.2f} times" if ratio < 10 else f"{ratio:,.0f} times"
