"""Algorithms by name: every spelling leads to the right class, and no two lines share a name."""

import pytest

import skldl
from skldl.exceptions import UnknownNameError
from skldl.names import ALGORITHMS, algorithm_titles, find_candidate
from skldl.utils.spelling import plain


@pytest.mark.parametrize("algorithm", [a for a in ALGORITHMS if a.title], ids=lambda a: a.title)
def test_title_and_class_name_lead_to_the_class(algorithm):
    for word in (algorithm.title, algorithm.title.lower().replace("-", "_"), plain(algorithm.title)):
        candidate = find_candidate(word)
        assert candidate.name == algorithm.title
        for setting in candidate.settings:
            assert type(candidate.make(setting)) is getattr(skldl, algorithm.class_name)
    assert find_candidate(algorithm.class_name).class_name == algorithm.class_name


def test_no_two_lines_share_a_name():
    titles = [plain(title) for title in algorithm_titles()]
    assert len(set(titles)) == len(titles)
    for algorithm in ALGORITHMS:
        for other in ALGORITHMS:
            if other.title and algorithm.class_name != other.class_name:
                assert plain(algorithm.class_name) != plain(other.title)


def test_names_that_used_to_lead_elsewhere():
    assert find_candidate("AARegressor").name == "AA-Regressor"
    assert find_candidate("forest").name == "Forest"
    assert find_candidate("PTClassifier").name == "PT-Classifier"


def test_import_paths_and_candidates_of_a_study():
    own = find_candidate("my_package.models:SABFGS")
    assert (own.name, own.estimator, own.grid) == ("SABFGS", "my_package.models:SABFGS", {})
    assert find_candidate("sa-bfgs", [own]) is own
    assert find_candidate("mean", [own]).name == "Mean"


def test_unknown_names_list_the_known_ones():
    with pytest.raises(UnknownNameError, match=r"No algorithm is called 'magic'.*SA-BFGS.*package\.module:Class"):
        find_candidate("magic")
    with pytest.raises(UnknownNameError, match="called 'LDLClassifier'"):
        find_candidate("LDLClassifier")
