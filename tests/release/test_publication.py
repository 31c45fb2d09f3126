"""What publication needs: versions and addresses agree, links lead somewhere, one command fills in the names."""

import json
import re
import shutil
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

yaml = pytest.importorskip("yaml")
ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
TEXTS = ("CODE_OF_CONDUCT.md", "GOVERNANCE.md", "SUPPORT.md", "CHANGELOG.md", "paper/paper.md")
in_the_repository = pytest.mark.skipif(not (ROOT / ".github").exists(), reason="these files are in the repository")


@pytest.fixture(scope="module")
def names(load_script):
    return load_script("tools/set_owner.py")


def recipe():
    return yaml.safe_load((ROOT / "recipe" / "recipe.yaml").read_text(encoding="utf-8"))


def test_versions_and_descriptions_agree():
    codemeta = json.loads((ROOT / "codemeta.json").read_text(encoding="utf-8"))
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {codemeta["version"], str(citation["version"]), recipe()["context"]["version"]} == {PROJECT["version"]}
    assert codemeta["description"] == recipe()["about"]["summary"] == PROJECT["description"]
    assert codemeta["keywords"] == PROJECT["keywords"]
    assert codemeta["softwareRequirements"] == PROJECT["dependencies"]
    assert codemeta["license"].endswith(PROJECT["license"])
    assert codemeta["runtimePlatform"] == f"Python {PROJECT['requires-python']}"
    assert codemeta["codeRepository"] == recipe()["about"]["repository"] == PROJECT["urls"]["Repository"]


def test_the_recipe_needs_what_the_package_needs():
    content = recipe()
    needed = [Requirement(one.replace("${{ python_min }}", "3.11")) for one in content["requirements"]["run"]]
    declared = [Requirement(one) for one in PROJECT["dependencies"]]
    assert {str(one) for one in needed if one.name != "python"} == {str(one) for one in declared}
    assert f">={content['context']['python_min']}" == PROJECT["requires-python"]
    assert content["build"]["python"]["entry_points"] == [f"{k} = {v}" for k, v in PROJECT["scripts"].items()]
    assert content["about"]["license"] == PROJECT["license"]
    assert all((ROOT / name).exists() for name in content["about"]["license_file"])


@pytest.mark.parametrize("name", TEXTS)
def test_links_lead_somewhere(name):
    path = ROOT / name
    links = re.findall(r"\]\((?!https?:|mailto:|#)([^)#\s]+)", path.read_text(encoding="utf-8"))
    assert [link for link in links if not (path.parent / link).exists()] == []


def test_the_changelog_of_a_version_can_be_read_in_two_minutes():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = text.split("\n## ")[1]
    assert len(newest.split()) <= 800
    assert "### Breaking changes" in newest


@in_the_repository
def test_one_command_fills_in_owner_and_contact(names, tmp_path):
    for name in names.FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    owner, contact = names.owner_and_contact(tmp_path)
    names.fill_in("some-lab", "conduct@lab.edu", tmp_path)
    assert names.owner_and_contact(tmp_path) == ("some-lab", "conduct@lab.edu")
    for name in names.FILES:
        text = (tmp_path / name).read_text(encoding="utf-8")
        assert "some-lab" in text or "conduct@lab.edu" in text, name
        assert not [old for old in (f"/{owner}/", f"/{owner}.github", contact) if old in text], name
    readme = (tmp_path / "README.md").read_text(encoding="utf-8").splitlines()
    assert readme[2] == names.badges("some-lab")
    names.fill_in("other", "conduct@lab.edu", tmp_path)
    again = (tmp_path / "README.md").read_text(encoding="utf-8").splitlines()
    assert again[2] == names.badges("other")
    assert len(again) == len(readme)
    for wrong in (("a/b", "x@y.org"), ("lab", "nobody")):
        with pytest.raises(ValueError, match="is not the name"):
            names.fill_in(*wrong, tmp_path)


@in_the_repository
def test_no_other_file_names_the_owner(names):
    owner, _ = names.owner_and_contact()
    pattern = re.compile(rf"github\.com/{owner}/scikit-ldl|{owner}\.github\.io/scikit-ldl")
    places = [*ROOT.glob("*.*"), *ROOT.glob(".github/**/*.*"), *ROOT.glob("docs/*.md"), *ROOT.glob("paper/*.*")]
    found = {
        path.relative_to(ROOT).as_posix() for path in places if path.is_file() and pattern.search(path.read_text())
    }
    assert found <= set(names.FILES)


def test_a_release_with_placeholders_is_rejected(names, load_script, tmp_path):
    faults = load_script("tools/check_release.py").placeholder_faults
    assert faults({"urls": {"Repository": "https://github.com/some-lab/scikit-ldl"}}) == []
    assert "tools/set_owner.py" in faults({"urls": {"Repository": "https://github.com/OWNER/scikit-ldl"}})[0]
    assert faults({}) == []


@in_the_repository
def test_issue_templates_have_what_their_forms_need():
    folder = ROOT / ".github" / "ISSUE_TEMPLATE"
    forms = {path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in folder.glob("*.yml")}
    assert set(forms) == {"bug", "feature", "question", "config"}
    for name in ("bug", "feature", "question"):
        form = forms[name]
        assert all(form[key] for key in ("name", "description", "body"))
        fields = [field for field in form["body"] if field["type"] != "markdown"]
        assert len({field["id"] for field in fields}) == len(fields)
        assert all(field["attributes"]["label"] for field in fields)
    updates = yaml.safe_load((ROOT / ".github" / "dependabot.yml").read_text(encoding="utf-8"))["updates"]
    assert {one["package-ecosystem"] for one in updates} == {"github-actions", "pip", "docker"}
    assert all((ROOT / one["directory"].lstrip("/")).is_dir() for one in updates)


def test_citations_of_the_paper_are_in_its_bibliography():
    text = (ROOT / "paper" / "paper.md").read_text(encoding="utf-8")
    entries = re.findall(r"^@\w+\{([\w-]+),", (ROOT / "paper" / "paper.bib").read_text(encoding="utf-8"), re.MULTILINE)
    cited = set(re.findall(r"(?<![\w.])@([a-z][\w-]*)", text.split("---", 2)[2]))
    assert cited == set(entries)
    assert len(entries) == len(set(entries))
    for section in ("Summary", "Statement of need", "State of the field", "References"):
        assert f"# {section}" in text


def test_numbers_of_the_paper_are_those_of_the_records():
    text = " ".join((ROOT / "paper" / "paper.md").read_text(encoding="utf-8").split())
    results = ROOT / "benchmarks" / "results"
    rows = json.loads((results / "sabfgs.json").read_text(encoding="utf-8"))["rows"]
    times = [row["python-ldl / ours to its objective"] for row in rows]
    assert f"takes {int(min(times))} to {max(times):.0f} times" in text
    times = [row["LogisticRegression / ours to its objective"] for row in rows]
    assert f"takes {min(times):.1f} to {max(times):.0f} times" in text
    losses = {}
    for row in json.loads((results / "accuracy.json").read_text(encoding="utf-8")):
        if row["order"] == "shuffled":
            losses.setdefault(row["dataset"], {})[row["model"]] = row["kullback_leibler"]
    best = [min(models, key=models.get) for models in losses.values()]
    assert f"shuffled folds of {len(losses)} datasets" in text
    assert f"divergence on {best.count('auto')}, and" in text
    assert not [model for model in best if model.startswith("sklearn")]
    reproduction = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")
    assert "beats 351 of 468 published cells" in reproduction.replace("**", "")
    assert "beats 351 of the 468 published cells" in text
