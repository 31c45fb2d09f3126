"""The public workflows call what runs locally, with pinned actions, few permissions and no secret."""

import ast
import re
from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml")
ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".github" / "workflows"
pytestmark = pytest.mark.skipif(not FOLDER.exists(), reason="the workflows are in the repository")
FILES = sorted(FOLDER.glob("*.yml"))


def jobs(path):
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    return content, content["jobs"]


def sessions():
    """Names of the sessions in noxfile.py, with a version where a session runs on several Pythons."""
    tree = ast.parse((ROOT / "noxfile.py").read_text(encoding="utf-8"))
    constants = {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "PYTHONS"
    }
    names = {
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and any("session" in ast.unparse(one) for one in node.decorator_list)
    }
    return names | {f"tests-{version}" for version in constants["PYTHONS"]}


def test_the_workflows_are_there():
    assert [path.name for path in FILES] == ["ci.yml", "release.yml", "site.yml"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_actions_are_pinned_to_commits_with_their_version(path):
    uses = re.findall(r"uses: (.+)", path.read_text(encoding="utf-8"))
    assert uses
    for action in uses:
        assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action), action


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_command_is_a_target_of_make(path):
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
    commands = [step["run"] for job in jobs(path)[1].values() for step in job["steps"] if "run" in step]
    assert commands
    for command in commands:
        make, target = command.split()
        assert make == "make"
        assert target in targets


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_no_secret_and_no_more_rights_than_needed(path):
    assert "secrets" not in path.read_text(encoding="utf-8")
    content, found = jobs(path)
    more = {"publish": {"id-token": "write"}, "deploy": {"pages": "write", "id-token": "write"}}
    assert content["permissions"] in ({}, {"contents": "read"})
    for name, job in found.items():
        assert job.get("permissions", content["permissions"]) == more.get(name, {"contents": "read"})
        assert "timeout-minutes" in job
        for step in job["steps"]:
            if step.get("uses", "").startswith("actions/checkout"):
                assert step["with"]["persist-credentials"] is False


def test_the_sessions_of_ci_exist():
    matrix = jobs(FOLDER / "ci.yml")[1]["release-check"]["strategy"]["matrix"]["include"]
    named = {entry["session"] for entry in matrix}
    assert named <= sessions()
    assert named >= {"tests-3.12", "tests-3.13", "tests-3.14", "lowest", "smoke"}
    for entry in matrix:
        if entry["session"].startswith("tests-"):
            assert entry["session"] == f"tests-{entry['python']}"


def test_only_what_was_checked_is_published():
    release = jobs(FOLDER / "release.yml")[1]
    assert release["publish"]["needs"] == "build"
    assert release["publish"]["environment"] == "release"
    assert not any("run" in step for step in release["publish"]["steps"])


def test_only_a_tested_site_is_deployed():
    site = jobs(FOLDER / "site.yml")[1]
    assert [step["run"] for step in site["build"]["steps"] if "run" in step] == ["make site"]
    assert site["deploy"]["needs"] == "build"
    assert not any("run" in step for step in site["deploy"]["steps"])
