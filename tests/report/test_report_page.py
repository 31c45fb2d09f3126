"""The page as text: nothing unescaped, nothing from outside, everything there without JavaScript."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import ExtraTreeRegressor

from skldl import AARegressor
from skldl.data import Dataset
from skldl.exceptions import RecordsError
from skldl.experiments import Candidate, Study, StudyResults, run_study
from skldl.experiments.outputs import write_outputs
from skldl.experiments.statistics import compare
from skldl.experiments.tables import measure_table
from skldl.report import _figures, render_report, write_report
from skldl.report._figures import comparison_figures  # for numbers of datasets that no short study has
from skldl.report._page import (  # sentences and keys are tested for results that no short study has
    columns_of_words,
    headline,
    skill_figure,
    skills_with_intervals,
    sort_key,
    trusted_tests,
)
from skldl.testing import make_distributions
from skldl.uncertainty._calibrated import cross_fit_maps  # replaced by one that records its arguments

SCRIPT = "<script>alert(1)</script>"


class Page(HTMLParser):
    """All elements with their attributes, and the text of each kind of element."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.texts, self._open = [], {}, []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self._open.append(tag)

    def handle_endtag(self, tag):
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data):
        self.texts.setdefault(self._open[-1] if self._open else "", []).append(data)


@pytest.fixture(scope="module")
def text(healthy_page):
    return healthy_page.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(text):
    return Page(text)


def test_one_script_and_one_style_both_as_the_policy_has_them(page):
    policy = next(a["content"] for tag, a in page.elements if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    for kind in ("style", "script"):
        (content,) = page.texts[kind]
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy
        assert sum(tag == kind for tag, _ in page.elements) == 1


def test_nothing_comes_from_outside(page):
    for tag, attributes in page.elements:
        for name, value in attributes.items():
            assert name != "style", f"{tag} has a style attribute, which the policy forbids"
            assert not name.startswith("on"), f"{tag} has an event attribute"
            if name in ("src", "href", "xlink:href", "action"):
                assert value.startswith(("#", "data:")), f"{tag} {name}={value}"
    assert not re.search(r"@import|url\(\s*['\"]?(?!#)", page.texts["style"][0])


def test_what_a_user_named_is_text(page, text):
    assert SCRIPT not in text
    everything = " ".join(piece for pieces in page.texts.values() for piece in pieces)
    assert SCRIPT in everything
    assert "fixed & <i>odd</i>" in everything
    assert '" onload="alert(2)' in everything
    assert not any(tag == "i" and "odd" in text for tag, text in page.elements)


def test_identifiers_are_unique_and_references_lead_somewhere(page):
    names = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(names) == len(set(names))
    for _, attributes in page.elements:
        if attributes.get("href", "").startswith("#"):
            assert attributes["href"][1:] in names
        for value in attributes.values():
            for target in re.findall(r"url\(#([^)]+)\)", value or ""):
                assert target in names


def test_pictures_have_titles_and_tables_captions(page):
    pictures = [attributes for tag, attributes in page.elements if tag == "svg"]
    # for wide and for narrow screens: skill, time, a case, examples, a triangle, a sensitivity
    assert len(pictures) == 2 * 6
    names = {attributes.get("id") for _, attributes in page.elements}
    for attributes in pictures:
        assert attributes["role"] == "img"
        assert attributes["aria-labelledby"] in names
    tables = sum(tag == "table" for tag, _ in page.elements)
    assert sum(tag == "caption" for tag, _ in page.elements) == tables
    for tag, attributes in page.elements:
        if tag == "th":
            assert attributes.get("scope") in ("row", "col")


def test_every_number_stands_in_the_page_without_javascript(healthy, text):
    results = StudyResults.load(healthy)
    for measure in results.measures:
        for _, cells in results.table(measure).rows:
            for cell in cells:
                assert cell.text in text
    for dataset in results.datasets:
        kept = results.predictions(dataset)
        assert f"instance {kept['rows'][0]}" in text
        assert f"<td>{kept['predicted']['Mean'][0, 0]:.4f}" in text


def test_sentences_sum_up(text):
    short = text[text.index("<h2>Summary</h2>") : text.index('<section id="figures">')]
    assert "the best average rank over 3 datasets" in short
    assert "of the loss of Mean (95% interval " in short
    assert "By Kullback-Leibler, better than always predicting the mean:" in short
    assert "3 datasets are too few for a test of average ranks." in short


def test_what_was_run_and_how_to_run_it_again(healthy, text):
    assert "Protocol nested." in text
    assert "n_neighbors from 1, 3, 9" in text
    assert f"skldl report {healthy.name}" in text
    assert StudyResults.load(healthy).header["fingerprint"] in text
    assert np.__version__ in text


def test_failures_and_all_predictions(broken_page):
    text = broken_page.read_text(encoding="utf-8")
    assert "no three &lt;/script&gt; labels" in text
    assert "tasks failed" in text
    for name in ("manifold-0", "calibration-1", "residuals-1"):
        assert f'id="figure-{name}"' in text
    assert len(re.findall("instance [0-9]+</caption>", text)) == 60
    assert "The 12 of 14 labels with the largest error" in text


def test_calibration_maps_see_no_mean_with_the_fold_of_the_row(broken, monkeypatch):
    seen = []

    def remember(methods, D, P, means, weight, folds):
        seen.append((D, means, folds))
        return cross_fit_maps(methods, D, P, means, weight, folds)

    monkeypatch.setattr(_figures, "cross_fit_maps", remember)
    assert list(_figures.correction_figures(StudyResults.load(broken)))
    assert seen
    for D, means, folds in seen:
        for train, test in folds:
            np.testing.assert_allclose(means[test], np.tile(D[train].mean(axis=0), (len(test), 1)), rtol=1e-9)


def test_the_least_that_can_be_reported(bare):
    text = write_report(bare).read_text(encoding="utf-8")
    assert "There are no complete results yet." in text
    assert 'id="instances"' not in text
    assert 'id="figures"' not in text
    assert "a test over datasets needs at least 2" in text


def test_unfinished_studies_have_a_report(healthy, tmp_path):
    lines = (healthy / "records.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "records.jsonl").write_text("".join(lines[:5]) + lines[5][:40])
    text = write_report(tmp_path).read_text(encoding="utf-8")
    assert "is torn" in text
    assert "not run" in text


def changed(healthy, datasets, level):
    """Results with other datasets, on all of which every candidate has the value given."""
    lines = [json.loads(line) for line in (healthy / "records.jsonl").read_text().splitlines()]
    names = [{"name": name, "apart": False} for name in datasets]
    header = lines[0] | {"study": lines[0]["study"] | {"datasets": names}}
    tests = [line for line in lines if line["kind"] == "evaluation" and line["dataset"] == "three"]
    info = [dict(lines[1], name=name, family=name) for name in datasets]
    for name in datasets:
        for test in tests:
            info.append(dict(test, dataset=name, measures=dict.fromkeys(test["measures"], level[test["candidate"]])))
    return StudyResults([header, *info], missing=["Movie", "Human_Gene"])


def summary(results, tests=None):
    return headline(results, tests, skills_with_intervals(results, "kullback_leibler"))


def test_a_clear_winner_is_distinguished_from_all_others(healthy):
    level = {"AA-kNN": 0.1, "fixed & <i>odd</i>": 0.2, "Mean": 0.3}
    results = changed(healthy, [f"d{i}" for i in range(40)], level)
    sentences = summary(results, trusted_tests(results, "kullback_leibler"))
    assert sentences[0] == (
        "By Kullback-Leibler, AA-kNN has the best average rank over 40 datasets, followed by fixed & <i>odd</i>."
    )
    expected = "With 40 datasets, and without Mean, the Nemenyi test distinguishes AA-kNN from all other candidates."
    assert expected in sentences
    assert "Datasets that were not found and not run: Movie and Human_Gene." in sentences
    assert (
        "The best candidate of each dataset has a skill (fraction of the loss of Mean that it removes) of 66.7% to "
        "66.7%, 66.7% in the median over 40 datasets."
    ) in sentences


def test_datasets_with_the_same_features_count_once_in_the_summary(healthy):
    level = {"AA-kNN": 0.1, "fixed & <i>odd</i>": 0.2, "Mean": 0.3}
    results = changed(healthy, [f"d{i}" for i in range(40)], level)
    for name, info in results.info.items():
        info["family"] = name if name in ("d0", "d1", "d2", "d3", "d4", "d5") else "one"
    tests = trusted_tests(results, "kullback_leibler")
    assert (len(tests.datasets), tests.candidates) == (7, ["AA-kNN", "fixed & <i>odd</i>"])
    tests.average_ranks[:] = [1.2, 1.8]
    frame = "With datasets with the same features counted once, as 7, and without Mean, the Nemenyi test"
    assert f"{frame} does not distinguish AA-kNN from fixed & <i>odd</i>." in summary(results, tests)
    tests.average_ranks[:] = 1.5
    expected = f"{frame} cannot distinguish AA-kNN and fixed & <i>odd</i>, whose average ranks are equal."
    assert expected in summary(results, tests)


def test_tied_runners_up_are_all_named_and_a_negative_skill_is_no_removed_loss(healthy):
    results = changed(healthy, ["d0", "d1"], {"AA-kNN": 0.2, "fixed & <i>odd</i>": 0.2, "Mean": 0.1})
    sentences = summary(results)
    assert sentences[0].endswith("followed by AA-kNN and fixed & <i>odd</i>.")
    assert sentences[1].startswith("On d0, the best skill is that of AA-kNN, -100.0%")
    assert "No candidate is better than the mean on d0 and d1." in sentences


def test_one_dataset_and_ties(healthy):
    level = {"AA-kNN": 0.5, "fixed & <i>odd</i>": 0.5, "Mean": 0.5}
    sentences = summary(changed(healthy, ["one"], level))
    assert sentences[0] == "By Kullback-Leibler, AA-kNN, fixed & <i>odd</i> and Mean are best on one."
    assert "No candidate is better than the mean on one." in sentences
    sentences = summary(changed(healthy, ["one", "two"], level))
    assert sentences[0].endswith("AA-kNN, fixed & <i>odd</i> and Mean have the best average rank over 2 datasets.")


def test_many_noise_floors_are_one_sentence(healthy):
    results = changed(healthy, list("abcd"), {"AA-kNN": 0.5, "fixed & <i>odd</i>": 0.6, "Mean": 0.7})
    for name in "abcd":
        results.info[name]["noise_ceiling"] = {"kullback_leibler": 0.3}
        results.info[name]["noise_ceiling_smoothed"] = {"kullback_leibler": 0.35}
    said = [sentence for sentence in summary(results) if "noise floor" in sentence]
    assert said == [
        "On 4 datasets made of votes the noise floor is known. Of the loss above it, the best candidate explains 50.0% "
        "in the median."
    ]
    for name in "abcd":
        results.info[name]["noise_ceiling"] = {"kullback_leibler": 0.7}
    assert "On 4 datasets made of votes, the loss of the mean is the noise floor." in summary(results)


def test_figures_of_average_ranks_need_five_datasets(healthy):
    level = {"AA-kNN": 0.1, "fixed & <i>odd</i>": 0.2, "Mean": 0.3}
    for n_datasets, expected in ((4, 0), (5, 3)):
        results = changed(healthy, [f"d{i}" for i in range(n_datasets)], level)
        tests = {measure: compare(results, measure) for measure in results.measures}
        names = [figure.name for figure in comparison_figures(results, tests)]
        assert sum(name.startswith("critical-") for name in names) == expected
        assert sum(name.startswith("ranks-") for name in names) == expected


def test_the_answer_comes_first_then_figures_then_tables(text):
    places = [text.index(f'id="{name}"') for name in ("answer", "figures", "tables", "tests", "instances", "run")]
    assert places == sorted(places)
    assert places[0] < text.index('id="figure-skill"') < places[1]
    contents = re.findall(r'href="#([^"]+)"', text[text.index('class="toc"') : text.index("</nav>")])
    assert [f'id="{name}"' in text for name in contents] == [True] * len(contents)
    assert {"answer", "figures", "tables", "tests", "instances", "run", "again"} <= set(contents)


def test_no_note_below_a_table_is_repeated(text):
    notes = re.findall('<p class="note">(.*?)</p>', text)
    assert len(notes) > 5
    assert len(notes) == len(set(notes))


def test_a_dataset_without_a_noise_floor_has_its_dash_below_the_floors_of_others(healthy):
    results = changed(healthy, ["one", "two"], {"AA-kNN": 0.8, "fixed & <i>odd</i>": 0.7, "Mean": 0.75})
    results.info["two"]["noise_ceiling"] = {"kullback_leibler": 0.3}
    table = measure_table(results, "kullback_leibler")
    place = table.head.index("Noise floor") - 1
    assert [cells[place].text for _, cells in table.rows] == ["–", "0.3"]
    assert not columns_of_words(table)


@pytest.mark.parametrize("criterion", ["kullback_leibler", "cosine"])
def test_the_noise_ceiling_stands_in_the_figure_of_skill(healthy, criterion):
    results = changed(healthy, ["one", "two"], {"AA-kNN": 0.8, "fixed & <i>odd</i>": 0.7, "Mean": 0.75})
    results.study["criterion"] = criterion
    results.info["two"]["noise_ceiling"] = {"kullback_leibler": 0.3, "cosine": 0.9}
    (figure,) = skill_figure(results, skills_with_intervals(results, criterion))
    assert "noise ceiling" in figure.caption
    assert figure.svg.count(">noise ceiling<") == 1


def test_command_line(bare, cli, tmp_path):
    (bare / "report.html").unlink(missing_ok=True)
    assert f"Report: {bare / 'report.html'}" in cli(["report", str(bare)]).out
    assert (bare / "report.html").read_text().endswith("</html>\n")
    assert not (bare / ".report.html.part").exists()
    assert len(cli(["report", str(tmp_path / "nowhere")], status=2).err.splitlines()) == 1


def test_the_same_records_give_the_same_page(healthy, text):
    assert render_report(StudyResults.load(healthy), healthy) == text


def test_an_empty_record_file_is_rejected(tmp_path):
    (tmp_path / "records.jsonl").write_text("")
    with pytest.raises(RecordsError):
        write_report(tmp_path)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("0.5 ± 0.1", 0.5),
        ("-12.5%", -0.125),
        ("3 ms / 2 s", 0.003),
        ("2.5 s", 2.5),
        ("40,401", 40401.0),
        ("–", ""),
        ("", ""),
    ],
)
def test_sort_keys(text, key):
    assert sort_key(text) == (pytest.approx(key) if key != "" else "")


@pytest.mark.slow
def test_steps_of_a_pipeline_are_no_names_for_a_reader(tmp_path):
    pipeline = Pipeline([("scale", StandardScaler()), ("model", AARegressor(ExtraTreeRegressor(random_state=0)))])
    grid = {"model__regressor__min_samples_leaf": (1, 4, 8), "model__regressor__max_depth": (-1, 2)}
    datasets = [Dataset(name, *make_distributions(40, random_state=seed)) for seed, name in enumerate(("one", "two"))]
    study = Study(datasets, [Candidate("Tree", pipeline, grid=grid)], folds=2)
    results = run_study(study, out=tmp_path)
    write_outputs(results, tmp_path)
    page = write_report(tmp_path, results).read_text(encoding="utf-8")
    texts = [page, *(path.read_text(encoding="utf-8") for path in tmp_path.rglob("*.md"))]
    assert all("model__" not in text and "kullback_leibler." not in text for text in texts)
    assert "sensitivity to min_samples_leaf" in page
    assert "min_samples_leaf from 1, 4, 8" in page
    assert "Settings that failed in a selection" in texts[1] + texts[2] + texts[-1]
    assert "Selection criterion: Kullback-Leibler." in page
