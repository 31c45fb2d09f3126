"""Mutated study files: each is rejected in one clear line, or runs as written; no hang, nothing executed, nothing lost.

Every file follows from its number, so that a finding can be repeated. The short run takes 25 files, ``make test-slow``
2,000. Counted are: clear (rejected with status 2, or failed tasks that are recorded), right (it ran, and the folder
holds the study that the file describes), unclear, silent, hang and lost.
"""

import copy
import math
import signal
import tomllib
import warnings
from collections import Counter

import numpy as np
import pytest

from skldl.cli import main
from skldl.experiments.store import read_records
from skldl.experiments.study_file import _toml, load_study  # the standard library writes no TOML

SECONDS = 60
ROWS = "".join(f"{i},{'ab'[i % 2]},{i % 4},{i % 5 + 1},{7 - i % 5}\n" for i in range(20))
GOOD = {
    "name": "good",
    "title": "A study",
    "protocol": "nested",
    "measures": ["clark", "cosine"],
    "criterion": "kullback_leibler",
    "folds": 2,
    "inner_folds": 2,
    "repeats": 1,
    "order": "shuffled",
    "seed": 0,
    "control": "Mean",
    "datasets": [
        {
            "name": "table",
            "apart": False,
            "source": "table.csv",
            "labels": ["l_one", "l_two"],
            "kind": "counts",
            "groups": "g",
            "drop": ["t"],
            "encode": True,
            "text_ngrams": "words",
            "splits": "",
        }
    ],
    "candidates": [
        {
            "name": "kNN",
            "estimator": "skldl:AAKNN",
            "params": {"weights": "uniform"},
            "grid": {"n_neighbors": [1, 3, 5]},
            "path": "n_neighbors",
            "natural": {"n_neighbors": [1]},
        },
        {"name": "Nested", "estimator": "skldl:AARegressor", "params": {"regressor": {"estimator": "x:Y", "alpha": 2}}},
        {"name": "Mean", "estimator": "skldl:MeanDistribution"},
    ],
}
GOOD["candidates"][1]["params"]["regressor"]["estimator"] = "sklearn.linear_model:Ridge"
MARK = "attacked"
ODD = [
    *(-1, 0, 1, 2, 3, 10**9, 10**18, 10**30, -(10**18), 0.5, -0.0, 1e308, 5e-324, math.inf, -math.inf, math.nan),
    *(True, False, "", " ", "nested", "Mean", "kNN", "no", "true", "None", "[]", "{}"),
    *("l_*", "*", "l_one", "g", "t", "a"),
    *("../../x", "/etc/passwd", "/dev/zero", "/dev/stdin", "~", ".", ".."),
    *("table.csv", "table.csv/", "C:\\x", "nul\0l"),
    *("os:system", f"os:system('touch {MARK}')", "builtins:eval", "subprocess:Popen", "skldl:save", "skldl:AAKNN"),
    *("sklearn.utils:check_array", "skldl", ":", "a:b:c", "skldl:__class__", "skldl.cli:main", "this:x"),
    *("ä ß 漢字", "\u202etxt", "\ud7ff", "😀" * 50, "x" * 5000, "a\nb", "a\tb", "\x1b[31mred"),
    *("<script>", "{{ 7*7 }}", "%s"),
    *([], [[]], [1], ["a", 1], [math.nan], {}, {"a": 1}, {"estimator": "os:system"}, [{"estimator": "os:system"}]),
    *({"estimator": "os:system", "command": f"touch {MARK}"}, [1] * 2000, {"": ""}, {"name": "x", "estimator": 3}),
]  # fmt: skip
UNKNOWN = [
    "timeout",
    "data",
    "trust",
    "random_state",
    "contenders",
    "x",
    "",
    "ä",
    "__class__",
    "fold",
    "datasets2",
    "described",
]


def places_of(value, path=()):
    """All places of a study, as paths of keys."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from places_of(item, (*path, key))


def mutated(number):
    """A study file as bytes: wrong values, keys that are missing or unknown, or damaged text."""
    rng = np.random.default_rng(number)
    study = copy.deepcopy(GOOD)
    for _ in range(int(rng.choice([1, 1, 2, 3]))):
        places = [place for place in places_of(study) if place]
        place = places[int(rng.integers(len(places)))]
        parent = study
        for key in place[:-1]:
            parent = parent[key]
        what = rng.choice(["set", "set", "set", "delete", "unknown"])
        if what == "set":
            parent[place[-1]] = copy.deepcopy(ODD[int(rng.integers(len(ODD)))])
        elif what == "delete":
            del parent[place[-1]]
        elif isinstance(parent, dict):
            parent[UNKNOWN[int(rng.integers(len(UNKNOWN)))]] = copy.deepcopy(ODD[int(rng.integers(len(ODD)))])
    content = "".join(f"{_toml(key)} = {_toml(value)}\n" for key, value in study.items()).encode(errors="replace")
    if rng.random() < 0.15:
        damaged = bytearray(content)
        for _ in range(int(rng.integers(1, 4))):
            damaged[int(rng.integers(len(damaged)))] = int(rng.integers(256))
        content = bytes(damaged[: int(rng.integers(1, len(damaged) + 1))] if rng.random() < 0.2 else damaged)
    return content


class Campaign:
    """Studies that are run one after the other in one folder, and what happened to each."""

    def __init__(self, folder, capsys):
        self.folder, self.capsys, self.counts, self.found = folder, capsys, Counter(), []
        (folder / "table.csv").write_text("x,t,g,l_one,l_two\n" + ROWS)
        self.files = self.contents()

    def contents(self):
        """What lies here before the attack, and must lie here after it."""
        return {path: path.read_bytes() for path in self.folder.glob("*") if path.suffix in (".csv", ".toml")}

    def attack(self, number):
        content = mutated(number)
        (self.folder / "study.toml").write_bytes(content)
        before, out = self.contents(), self.folder / f"out{number}"
        earlier = signal.signal(signal.SIGALRM, _stop)
        signal.alarm(SECONDS)
        self.capsys.readouterr()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a warning is a fair answer to nonsense
                status = main(["bench", "study.toml", "--jobs", "1", "--out", str(out)])
        except BaseException as error:
            status = f"{type(error).__name__}: {error}"
        finally:
            signal.alarm(0)
            signal.signal(signal.SIGALRM, earlier)
        reported = self.capsys.readouterr()
        verdict = self.judge(status, reported.out + reported.err, out)
        if before != self.contents() or list(self.folder.rglob(MARK)) or (self.folder.parent / "x").exists():
            verdict = "lost"
        self.counts.update(["tried", verdict])
        if verdict not in ("clear", "right"):
            self.found.append(f"{verdict}: file {number}: {status} {(reported.err or reported.out)[-300:]}")

    def judge(self, status, reported, out):
        if isinstance(status, str):
            return "hang" if status.startswith("TimeoutError: hang") else "unclear"
        if status == 2:
            return (
                "clear"
                if reported.startswith("skldl: ") and reported.count("\n") == 1 and len(reported) < 2500
                else "unclear"
            )
        if status == 1:
            return "clear" if "Failed: " in reported and "Traceback" not in reported else "unclear"
        written = load_study(self.folder / "study.toml")
        records, torn = read_records(out / "records.jsonl")
        kept = load_study(out / "study.toml")
        asked = written.with_options(datasets=kept.datasets)  # datasets know their files by now
        same = kept.fingerprint() == asked.fingerprint() == records[0]["fingerprint"] and not torn
        done = sum(record["kind"] == "evaluation" for record in records)
        return "right" if same and done == 2 * written.repeats * len(written.candidates) else "silent"


def _stop(*_):
    raise TimeoutError("hang")


@pytest.fixture
def campaign(tmp_path, monkeypatch, capsys):
    folder = tmp_path / "a" / "b" / "c"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    monkeypatch.setattr("skldl.report.write_report", lambda folder, results: "")
    monkeypatch.setattr("skldl.experiments.statistics.POSTERIOR_DRAWS", 20)
    return Campaign(folder, capsys)


def test_the_study_itself_is_good(campaign, monkeypatch):
    monkeypatch.setattr(
        f"{__name__}.mutated", lambda number: "".join(f"{k} = {_toml(v)}\n" for k, v in GOOD.items()).encode()
    )
    campaign.attack(0)
    assert campaign.counts["right"] == 1, campaign.found


def test_some_mutated_study_files(campaign):
    for number in range(25):
        campaign.attack(number)
    assert not campaign.found, f"{dict(campaign.counts)}\n" + "\n".join(campaign.found)
    assert campaign.counts["clear"] > 10


@pytest.mark.slow
@pytest.mark.parametrize("first", range(100, 2100, 500))
def test_two_thousand_mutated_study_files(campaign, first):
    for number in range(first, first + 500):
        campaign.attack(number)
    print(dict(campaign.counts))
    assert not campaign.found, f"{dict(campaign.counts)}\n" + "\n".join(campaign.found)


def test_files_follow_from_their_numbers():
    assert mutated(7) == mutated(7)
    assert len({mutated(number) for number in range(50)}) > 40
    valid = 0
    for number in range(50):
        try:
            tomllib.loads(mutated(number).decode())
            valid += 1
        except ValueError:
            pass
    assert valid > 25  # most reach the reader of studies, not only that of TOML
