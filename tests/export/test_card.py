"""Model cards: everything that the file knows, nothing that breaks the Markdown."""

import skldl
from skldl.data import Columns
from skldl.export import model_card
from skldl.persistence import inspect
from skldl.tabular import FitOptions, fit_table


def test_a_card_says_what_data_scores_and_limits(faces_model):
    card = model_card(inspect(faces_model), name="faces")
    for heading in ("## Model", "## Labels", "## Data", "## Scores", "## Limits", "## Use"):
        assert heading in card
    assert "| age | number |" in card
    assert "emo\\_joy, emo\\_anger, emo\\_fear" in card
    assert "Rows of one person were kept together" in card
    assert "Training rows in the file: " in card
    assert "Noise floor: not known" in card
    score = inspect(faces_model)["description"]["score"]
    assert f"| this model | {score['kullback_leibler']:.4g} |" in card
    assert f"{score['skill']:.1%}" in card


def test_a_noise_floor_is_shown_where_the_file_has_one(faces_model):
    about = inspect(faces_model)
    about["description"]["score"]["noise_floor"] = 0.0123
    card = model_card(about, name="faces")
    assert "given so few answers a row | 0.0123 |" in card
    about["description"]["score"] |= {"noise_floor_smoothed": 0.0145, "noise_floor_error": 0.001, "explained": 0.9}
    card = model_card(about, name="faces")
    assert "given so few answers a row | 0.0123 to 0.0145 |" in card
    assert "which alone can be explained: 90.0%" in card
    assert "not known" not in card


def test_a_skill_that_is_not_finite_is_written(faces_model):
    about = inspect(faces_model)
    about["description"]["score"] |= {"skill": None, "skill_low": None, "skill_high": None}  # so a file holds it
    card = model_card(about, name="faces")
    assert "that the model removes: −∞ (95 % interval −∞ to −∞)." in card
    assert "not clearly better than the mean distribution" in card
    about["description"]["score"] |= {"skill": 0.5, "skill_high": 0.9}
    assert "that the model removes: 50.0% (95 % interval −∞ to 90.0%)." in model_card(about, name="faces")


def test_kept_rows_and_models_of_rows_are_named(faces, tmp_path):
    made = fit_table(
        faces,
        Columns("emo_*", drop=["person"]),
        model="aa-knn",
        settings={"n_neighbors": 3},
        options=FitOptions(values=[1, 2, 3], keep_rows=7),
    )
    path = skldl.save(made.model, tmp_path / "m.skldl", description=made.description)
    card = model_card(inspect(path), name="m")
    assert "Training rows in the file: encoded, in AAKNN; " in card
    assert "7 as they were" in card
    assert "the numbers 1, 2, 3" in card


def test_names_cannot_break_the_markdown(faces, tmp_path):
    table = faces.drop(columns=["person"]).rename(columns={"age": "a|b\n# <b>age</b>"})
    made = fit_table(table, "emo_*", model="mean")
    card = model_card({"created": "now", "versions": {"scikit-ldl": "0"}, "description": made.description}, name="x")
    assert "| a\\|b \\# \\<b\\>age\\</b\\> | number |" in card
    assert "The file holds no scores" not in card
    bare = model_card({"created": "now", "versions": {"scikit-ldl": "0"}, "description": {}}, name="x")
    assert "The file holds no scores" in bare


def test_code_floor_and_control_characters_are_written_for_readers(faces, tmp_path):
    votes = faces.drop(columns=["person"])
    names = [name for name in votes if name.startswith("emo_")]
    counts = votes.assign(**{name: (votes[name] * 10).round() + 1 for name in names}).rename(columns={"age": "a\x1bge"})
    made = fit_table(
        counts,
        Columns("emo_*", kind="counts"),
        model="sa-bfgs",
        settings={"alpha": 0.01},
        options=FitOptions(intervals=True),
    )
    path = skldl.save(made.model, tmp_path / "m.skldl", description=made.description)
    card = model_card(inspect(path), name="m")
    assert "`SABFGS(alpha=0.01, fit_intercept=True)`" in card  # no escapes inside a code span
    assert "| a\\\\x1bge | number |" in card
    assert "\x1b" not in card
    score = made.description["score"]
    assert f"| {score['noise_floor']:.4g} to {score['noise_floor_smoothed']:.4g} |" in card
    assert "noise floor error" not in card
    assert f"calibration of intervals: {made.description['intervals']}\n" in card
    assert "\n\n\n" not in card
