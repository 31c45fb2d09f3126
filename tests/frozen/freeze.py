"""Write the frozen numbers: ``python tests/frozen/freeze.py [--only PATTERN]``, or all predictions to a file.

Without ``--full`` this writes ``numbers.json``, what ``make test`` compares with: for each case the shape, the first
row and two checksums. The numbers were made with version 0.2.0 (``PYTHONPATH=<checkout of 0.2.0>/src``). A change that
is meant to change numbers renews those of its cases alone, by ``--only``, in a commit of its own.

``--full FILE.npz`` writes all numbers of all cases, those that are too slow for ``make test`` included; see compare.py.
"""

import argparse
import fnmatch
import json
from pathlib import Path
from typing import Any

import numpy as np
from cases import Case, estimator_cases, large_cases
from functions import function_cases
from way import way_cases

NUMBERS = Path(__file__).parent / "numbers.json"


def all_cases() -> list[Case]:
    """All cases, in a fixed order."""
    return [*estimator_cases(), *function_cases(), *way_cases(), *large_cases()]


def summary(result: np.ndarray | str) -> Any:
    """A result as it is kept: the name of an error, or shape, beginning and two weighted sums of all numbers."""
    if isinstance(result, str):
        return result
    values = result.ravel()
    place = np.arange(values.size)
    # Two sums with weights that are not periodic: numbers that change or trade places change at least one of them.
    sums = [float(np.cos(step * place) @ values) for step in (2**0.5, 3**0.5)]
    begin = values[: min(12, result.shape[-1] if result.ndim > 1 else 12)]
    return {"shape": list(result.shape), "begin": begin.tolist(), "sums": sums}


def main() -> None:
    """Compute the cases and write them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="*", help="pattern of names of cases, as of files; the others stay")
    parser.add_argument("--full", help="write all numbers to this .npz file")
    options = parser.parse_args()
    chosen = [case for case in all_cases() if fnmatch.fnmatchcase(case.name, options.only)]
    if options.full:
        np.savez_compressed(
            options.full, **{case.name.replace("/", "|"): np.asarray(case.compute()) for case in chosen}
        )
        return
    numbers = json.loads(NUMBERS.read_text()) if options.only != "*" and NUMBERS.exists() else {}
    numbers |= {case.name: summary(case.compute()) for case in chosen if not case.slow}
    order = [case.name for case in all_cases() if case.name in numbers]
    lines = [f"{json.dumps(name)}: {json.dumps(numbers[name])}" for name in order]
    NUMBERS.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(f"{len(chosen)} cases computed, {len(order)} in {NUMBERS.name}")


if __name__ == "__main__":
    main()
