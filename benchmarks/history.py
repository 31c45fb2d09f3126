"""The speed of each version, so that a slower release is noticed.

    python benchmarks/history.py write                    # history/VERSION.json from results/; make bench calls it
    python benchmarks/history.py compare [OLD [NEW]]      # the last two versions, or those named

Machines differ from release to release, so seconds are not compared. What is kept is a ratio: our time divided by that
of a reference (python-ldl, scikit-learn, torch, bare matrix products) that was measured in the same run on the same
machine. If a version is slower, its ratio is larger. `compare` ends with status 1 if the geometric mean of a section
has grown by more than a quarter.
"""

import argparse
import json
import math
import re
import statistics
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import skldl

HERE = Path(__file__).parent
HISTORY = HERE / "history"
RESULTS = HERE / "results"
SLOWER = 1.25
"""Growth of a section's ratios, as a geometric mean, above which a version counts as slower."""

Ratios = dict[str, dict[str, dict[str, float]]]
"""Section, then case (a dataset, as a rule), then what is divided: our time by the reference's."""


def ratios_of(row: dict[str, Any]) -> dict[str, float]:
    """Our time divided by that of each reference, from one row of a result file.

    Parameters
    ----------
    row : dict
        Columns such as ``"python-ldl / ours"`` (its time divided by ours) or ``"ours / KNeighborsRegressor"``.

    Returns
    -------
    dict of str to float
        Such as ``{"ours / python-ldl": 0.02}``.
    """
    found = {}
    for column, value in row.items():
        if not isinstance(value, int | float) or not value > 0:
            continue
        if match := re.fullmatch(r"(.+) / ours(.*)", column):
            found[f"ours{match[2]} / {match[1]}"] = 1 / value
        elif re.fullmatch(r"ours.* / .+", column):
            found[column] = float(value)
    return found


def collect(results: Path, version: str) -> tuple[Ratios, dict[str, dict[str, str]]]:
    """Every ratio that a version was measured with.

    Parameters
    ----------
    results : Path
        Folder with the result files of the benchmarks.
    version : str
        Rows of other versions are left out.

    Returns
    -------
    ratios : dict
        By section, case and what is divided.
    machines : dict
        What each section was measured on.
    """
    ratios: Ratios = {}
    machines = {}
    for path in sorted(results.glob("*.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        if not (isinstance(content, dict) and "rows" in content):  # accuracy, memory, GPU: no peer in the same run
            continue
        versions = content.get("versions", {})
        for row in content["rows"]:
            case = str(next(iter(row.values())))
            if versions.get(case, content["machine"].get("scikit-ldl")) == version and (found := ratios_of(row)):
                ratios.setdefault(path.stem, {})[case] = found
                machines[path.stem] = content["machine"]
    return ratios, machines


def write(version: str, results: Path = RESULTS, history: Path = HISTORY) -> Path | None:
    """Put the ratios of a version into its file; cases that were measured before and are not measured now stay.

    Parameters
    ----------
    version : str
        The version.
    results : Path
        Folder with the result files.
    history : Path
        Folder with one file for each version.

    Returns
    -------
    Path or None
        The file; None if nothing was measured with this version.
    """
    ratios, machines = collect(results, version)
    if not ratios:
        return None
    path = history / f"{version}.json"
    if path.exists():
        before = json.loads(path.read_text(encoding="utf-8"))
        ratios = {
            section: before["ratios"].get(section, {}) | ratios.get(section, {})
            for section in sorted({*before["ratios"], *ratios})
        }
        machines = before["machines"] | machines
    history.mkdir(exist_ok=True)
    content = {"version": version, "machines": machines, "ratios": ratios}
    path.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return path


def versions_of(history: Path) -> list[str]:
    """The versions that have a file, oldest first."""
    return sorted((path.stem for path in history.glob("*.json")), key=_order)


def _order(version: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", version)]


def compare(old: dict[str, Any], new: dict[str, Any]) -> dict[str, dict[str, float]]:
    """By which factor each ratio has changed; above one the new version is slower.

    Parameters
    ----------
    old, new : dict
        Contents of two files of the history.

    Returns
    -------
    dict of str to dict
        Section, then ``"case: what is divided"``, then the factor; only what both versions were measured with.
    """
    changes: dict[str, dict[str, float]] = {}
    for section, cases in new["ratios"].items():
        for case, ratios in cases.items():
            before = old["ratios"].get(section, {}).get(case, {})
            for name in ratios.keys() & before.keys():
                changes.setdefault(section, {})[f"{case}: {name}"] = ratios[name] / before[name]
    return changes


def geometric_mean(factors: Iterable[float]) -> float:
    """The factor whose logarithm is the mean of the logarithms."""
    return math.exp(statistics.fmean(math.log(factor) for factor in factors))


def lines(old: dict[str, Any], new: dict[str, Any], *, slower: float = SLOWER) -> tuple[list[str], list[str]]:
    """What `compare` prints.

    Parameters
    ----------
    old, new : dict
        Contents of two files of the history.
    slower : float
        Factor above which a section counts as slower.

    Returns
    -------
    text : list of str
        Lines of the comparison.
    found : list of str
        The sections that are slower.
    """
    changes, found = compare(old, new), []
    text = [f"{old['version']} to {new['version']}: factor of our time against the reference; above 1 is slower", ""]
    for section, factors in sorted(changes.items()):
        mean = geometric_mean(factors.values())
        if mean > slower:
            found.append(section)
        text.append(f"{section}: {mean:.2f} over {len(factors)} ratios{'  SLOWER' if mean > slower else ''}")
        text += [
            f"    {factor:5.2f}  {name}"
            for name, factor in sorted(factors.items(), key=lambda pair: -pair[1])
            if factor > slower or factor < 1 / slower
        ]
        text += _other_references(section, old["machines"][section], new["machines"][section])
    for title, one, other in (("now", old, new), ("before", new, old)):
        alone = sorted(set(other["ratios"]) - set(one["ratios"]))
        if alone:
            text.append(f"measured only {title}: {', '.join(alone)}")
    if not changes:
        text.append("The two versions share no measurement.")
    return text, found


def _other_references(section: str, before: dict[str, str], now: dict[str, str]) -> list[str]:
    """A note where the time of a reference changed, too, which is part of the factor."""
    names = sorted((before.keys() | now.keys()) - {"cpu", "cores used", "scikit-ldl"})
    different = [f"{name} {before.get(name)} to {now.get(name)}" for name in names if before.get(name) != now.get(name)]
    return [f"    note: other versions in {section}: {', '.join(different)}"] if different else []


def _show(arguments: argparse.Namespace) -> int:
    known = versions_of(HISTORY)
    asked = [*arguments.versions]
    unknown = [version for version in asked if version not in known]
    if unknown:
        sys.exit(f"There is no history of {', '.join(unknown)}. Known: {', '.join(known) or 'none'}.")
    if not asked:
        asked = known[-2:]
    elif len(asked) == 1:
        asked.append(known[-1])
    if len(asked) < 2:
        sys.exit("Two versions are needed: run make bench with each, or name two.")
    old, new = (json.loads((HISTORY / f"{version}.json").read_text(encoding="utf-8")) for version in asked[:2])
    text, found = lines(old, new, slower=arguments.slower)
    print("\n".join(text))
    return int(bool(found))


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    writer = commands.add_parser("write")
    writer.add_argument("--version", help="the version of the rows to keep; the one of the package unless given")
    writer.add_argument("--results", type=Path, default=RESULTS)
    comparer = commands.add_parser("compare")
    comparer.add_argument("versions", nargs="*", metavar="VERSION")
    comparer.add_argument("--slower", type=float, default=SLOWER)
    arguments = parser.parse_args()
    if arguments.command == "compare":
        return _show(arguments)
    version = arguments.version or skldl.__version__
    path = write(version, arguments.results)
    print(f"History: {path}" if path else f"Nothing in {arguments.results} was measured with {version}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
