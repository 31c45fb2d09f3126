"""Model files that 0.1 wrote still load, and predict what 0.1 predicted."""

from pathlib import Path

import numpy as np
import pytest

import skldl
from skldl import persistence

pandas = pytest.importorskip("pandas")
FILES = Path(__file__).parent / "files_0_1"
TABLE = FILES / "table.csv"


@pytest.mark.parametrize("path", sorted(FILES.glob("*.skldl")), ids=lambda path: path.stem)
def test_predictions_are_those_of_0_1(path):
    about, model = persistence.read(path)
    assert about["versions"]["scikit-ldl"] == "0.1.0"
    predicted = pandas.DataFrame(model.predict(pandas.read_csv(TABLE)), columns=model[-1].label_names_)
    written = pandas.read_csv(path.with_suffix(".csv"))
    shared = [name for name in predicted.columns if name in written.columns]
    assert len(shared) == predicted.shape[1] == 3
    # the last digits depend on the BLAS that the processor gets
    np.testing.assert_allclose(predicted[shared], written[shared], rtol=0, atol=1e-9)


def test_the_old_path_of_the_encoder_leads_to_its_new_home():
    model = skldl.load(FILES / "mean.skldl")
    assert type(model[0]) is skldl.tabular.TableEncoder
    for name in persistence.RENAMED.values():
        module, _, kind = name.rpartition(".")
        assert hasattr(__import__(module, fromlist=[kind]), kind)
