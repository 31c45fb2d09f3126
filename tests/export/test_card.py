"""Model cards: everything that the file knows, nothing that breaks the Markdown."""

import skldl
from skldl.export import model_card
from skldl.persistence import inspect
from skldl.tabular import fit_table


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
    assert "| the true distributions (noise floor) | 0.0123 |" in card
    about["description"]["score"] |= {"noise_floor_error": 0.001, "explained": 0.9}
    card = model_card(about, name="faces")
    assert "(noise floor) | 0.0123 ± 0.001 |" in card
    assert "which alone can be explained: 90.0%" in card
    assert "not known" not in card


def test_kept_rows_and_models_of_rows_are_named(faces, tmp_path):
    made = fit_table(
        faces, "emo_*", model="aa-knn", settings={"n_neighbors": 3}, drop=["person"], values=[1, 2, 3], keep_rows=7
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
