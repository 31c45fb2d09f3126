"""Claims of the paper about time, on times that are given."""

import pytest

from comparison.time_claims import OPEN, PRINTED, RULE, check_time_claims
from skldl.experiments import StudyResults

HERE, ELSEWHERE = {"numpy": "2.0"}, {"numpy": "1.0"}
DATASETS = ["Artificial", "Yeast_alpha", "Movie"]


def timed(train, test, *, datasets=DATASETS, candidates=tuple(PRINTED), elsewhere=(), status="ok"):
    """Results whose tasks took given seconds, one if none are given."""
    study = {"name": "times", "title": "", "protocol": "geng2016", "measures": ["clark"], "criterion": "clark"}
    study |= {"folds": 1, "repeats": 1, "order": "file", "seed": 0, "control": "Mean"}
    study["datasets"] = [{"name": name, "apart": name == "Artificial"} for name in datasets]
    study["candidates"] = [{"name": name, "estimator": f"skldl:{name}"} for name in [*candidates, "Mean"]]
    records = [{"kind": "header", "format": 2, "study": study, "missing": [], "versions": HERE}]
    for dataset in datasets:
        info = {"kind": "dataset", "name": dataset, "apart": dataset == "Artificial", "family": dataset}
        info |= {"n_test": 0, "n_samples": 9, "n_features": 2, "n_labels": 3, "fingerprint": dataset}
        records.append(info | {"near_zero_share": 0.0, "mean_entropy_share": 0.5})
        for candidate in [*candidates, "Mean"]:
            record = {"kind": "evaluation", "dataset": dataset, "candidate": candidate, "repeat": 0, "fold": 0}
            record |= {"status": status, "measures": {"clark": 0.5}, "params": {}, "selection_seconds": 0.0}
            record |= {"fit_seconds": train.get(candidate, 1.0), "predict_seconds": test.get(candidate, 1.0)}
            records.append(record | {"versions": ELSEWHERE if candidate in elsewhere else HERE})
    return StudyResults(records)


def verdicts(*args, **options):
    return {v.claim.partition(" (")[0]: v.verdict for v in check_time_claims(timed(*args, **options))}


LONGEST = "Training AA-BP takes longest"
MOST = "AA-kNN costs the most test time"
LEAST = "SA-BFGS and SA-IIS cost the same, least test time"
FASTER = "Training SA-BFGS is much faster than training SA-IIS"
EFFICIENT = "SA-BFGS and PT-Bayes are the most efficient"


def test_claims_about_time_on_the_artificial_dataset():
    train = {"PT-Bayes": 1, "PT-SVM": 2, "AA-kNN": 0.1, "AA-BP": 9, "SA-IIS": 5, "SA-BFGS": 1.5}
    test = {"PT-Bayes": 3, "PT-SVM": 4, "AA-kNN": 20, "AA-BP": 5, "SA-IIS": 1, "SA-BFGS": 1.1}
    assert verdicts(train, test) == {
        LONGEST: OPEN,  # 9 s, and SA-IIS 5 s
        MOST: "holds",
        LEAST: "holds",
        FASTER: "holds",
        EFFICIENT: OPEN,  # 2.6 s and 4 s, and SA-IIS 6 s
    }
    upside_down = ({name: 1 / seconds for name, seconds in times.items()} for times in (train, test))
    assert set(verdicts(*upside_down).values()) == {"does not hold"}
    assert verdicts({}, {}, datasets=["Movie"]) == {FASTER: "cannot be checked here"}


def test_the_paper_s_own_times_are_judged_by_the_same_rule():
    shown = {v.claim.partition(" (")[0]: v.evidence for v in check_time_claims(timed({}, {}))}
    assert shown[LONGEST].endswith(
        "AA-BP 101,568 ms, SA-IIS 1,168 ms, PT-SVM 391 ms, SA-BFGS 187 ms, PT-Bayes 22 ms, AA-kNN 0 ms: holds."
    )
    assert shown[MOST].endswith("SA-IIS 33 ms, SA-BFGS 33 ms: holds.")
    assert shown[LEAST].endswith(f"AA-kNN 79,961 ms: {OPEN}.")  # 33, 33, and PT-Bayes 45
    assert "by the printed times 6.25 times" in shown[FASTER]
    assert shown[EFFICIENT].endswith("AA-BP 101,717 ms: holds.")
    printed = [{name: times[i] for name, times in PRINTED.items()} for i in (0, 1)]
    assert verdicts(*printed) == {LONGEST: "holds", MOST: "holds", LEAST: OPEN, FASTER: "holds", EFFICIENT: "holds"}


@pytest.mark.parametrize(
    ("test", "verdict"),
    [
        ({"SA-IIS": 1, "SA-BFGS": 1}, "holds"),
        ({"SA-IIS": 1, "SA-BFGS": 2}, "does not hold"),  # the least two, but not the same
        ({"SA-IIS": 1, "SA-BFGS": 1, "PT-SVM": 1.5}, OPEN),
        ({"SA-IIS": 1, "SA-BFGS": 1, "PT-SVM": 0.7}, OPEN),
        ({"SA-IIS": 1, "SA-BFGS": 1, "PT-SVM": 0.5}, "does not hold"),
        ({"SA-IIS": 1, "PT-SVM": 1, "SA-BFGS": 1e-9}, "does not hold"),
    ],
)
def test_times_are_compared_from_a_factor_of_two_on(test, verdict):
    assert verdicts({}, dict.fromkeys(PRINTED, 3) | test)[LEAST] == verdict


def test_where_a_time_cannot_be_compared_no_claim_about_all_six_holds():
    train = {"PT-SVM": 50, "AA-BP": 3}
    assert verdicts(train, {})[LONGEST] == "does not hold"
    assert verdicts({"AA-BP": 3}, {})[LONGEST] == "holds"
    longest = check_time_claims(timed({"AA-BP": 3}, {}, elsewhere=["PT-SVM"]))[0]
    assert longest.verdict == "cannot be checked here"
    assert "No time that can be compared: PT-SVM. Printed in the paper:" in longest.evidence
    assert "PT-SVM" not in longest.evidence.partition("No time")[0]
    # one that takes longer is enough to deny it
    assert verdicts({"AA-BP": 3, "SA-IIS": 9}, {}, elsewhere=["PT-SVM"])[LONGEST] == "does not hold"
    assert verdicts({"AA-BP": 3}, {}, elsewhere=["AA-BP"])[LONGEST] == "cannot be checked here"
    assert verdicts({}, {}, elsewhere=["SA-IIS"])[FASTER] == "cannot be checked here"
    assert "with other versions than those of the study" in RULE


@pytest.mark.parametrize(
    ("ratio", "verdict"), [(2.0, "holds"), (1.9, OPEN), (1.1, OPEN), (1.0, "does not hold"), (0.1, "does not hold")]
)
def test_much_faster_is_twice_as_fast(ratio, verdict):
    speed = check_time_claims(timed({"SA-IIS": ratio}, {}))[3]
    assert speed.verdict == verdict
    assert f"There SA-IIS takes {ratio:.2f} times as long" in speed.evidence
    assert f"On the 2 other datasets it takes {ratio:.2f} times (Yeast_alpha) to" in speed.evidence


def test_claims_where_all_failed_or_algorithms_did_not_take_part():
    failed = check_time_claims(timed({}, {}, datasets=["Artificial"], status="failed"))
    assert {verdict.verdict for verdict in failed} == {"cannot be checked here"}
    assert failed[3].evidence.startswith("The artificial dataset did not take part, or one of the two failed there")
    (alone,) = check_time_claims(timed({}, {}, candidates=["AA-kNN", "SA-IIS"]))
    assert (alone.verdict, alone.evidence) == ("cannot be checked here", "SA-BFGS or SA-IIS did not take part.")
