"""The page for users of python-ldl names everything that package holds, and nothing that this one does not."""

import importlib
import re
from pathlib import Path

import pytest

import skldl
from skldl import enhancement
from skldl.losses import COMBINATIONS, LOSSES
from skldl.metrics import MEASURES

PAGE = Path(__file__).parents[2] / "docs" / "coming-from-python-ldl.md"
# public names of python-ldl 0.1.2, by module
ALGORITHMS = [
    "LDL_DVS",
    "LDL_DPM",
    "RG4LDL",
    "RKNN_LDL",
    "SNEFY_LDL",
    "S_LRR",
    "S_SCL",
    "S_KLD",
    "S_CJS",
    "S_QFD2",
    "Shallow_S_LDL",
    "Delta_LDL",
    "LDL_HVLC",
    "TKLRLDL",
    "TLRLDL",
    "LDL_DPA",
    "LDL_LRR",
    "DF_LDL",
    "LDL_SCL",
    "Duo_LDL",
    "BD_LDL",
    "LDL_LCLR",
    "LDLSF",
    "LDLLC",
    "LALOT",
    "StructRF",
    "BCPNN",
    "ACPNN",
    "LDLF",
    "LDLogitBoost",
    "SA_BFGS",
    "SA_IIS",
    "AA_KNN",
    "AA_BP",
    "PT_Bayes",
    "PT_SVM",
    "LDSVR",
    "CPNN",
    "LIBLE",
    "ConLE",
    "LEVI",
    "GLLE",
    "ML",
    "LP",
    "KM",
    "FCM",
    "WInLDL",
    "IncomLDL",
    "LDLM",
    "LDL_HR",
    "LDL4C",
    "SSG_LDL",
    "LDL_DA",
    "GLD_SVR",
    "GLD_KNN",
    "GLD_BFGS",
]
THEIR_LOSSES = ["cad", "qfd2", "cjs", "unimodal_loss", "concentrated_loss"]
THEIR_MEASURES = [
    "chebyshev",
    "clark",
    "canberra",
    "kl_divergence",
    "js_divergence",
    "cosine",
    "intersection",
    "euclidean",
    "sorensen",
    "chi2",
    "wave_hedges",
    "fidelity",
    "spearman",
    "kendall",
    "dpa",
    "mu",
    "jsd_dirichlet_expectation",
    "jsd_dirichlet_variance",
    "nu1",
    "nu2",
    "nu3",
    "divisiveness_error",
    "mean_absolute_error",
    "mean_squared_error",
    "zero_one_loss",
    "error_probability",
    "ood_error",
    "hamming",
    "jaccard",
    "subset_accuracy",
    "match_m",
    "top_k",
    "max_roc_auc",
    "precision",
    "specificity",
    "sensitivity",
    "youden_index",
    "accuracy",
    "worst_kl_divergence",
    "score",
]
UTILITIES = [
    "load_dataset",
    "download_dataset",
    "gaussian_noise",
    "random_missing",
    "random_exchange",
    "emphasize",
    "artificial",
    "make_ldl",
    "plot_artificial",
    "regressor2ldl",
    "normalize",
    "proj",
    "softmax",
    "binaryzation",
    "run",
]


@pytest.fixture(scope="module")
def rows():
    """Cells of the tables: what stands in the first column, and what in the second."""
    tables = [line for line in PAGE.read_text().splitlines() if line.startswith("| ") and "---" not in line]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:3]] for line in tables]


@pytest.mark.parametrize("name", [*ALGORITHMS, *THEIR_LOSSES, *THEIR_MEASURES, *UTILITIES])
def test_every_name_of_python_ldl_is_there(rows, name):
    assert any(f"`{name}`" in theirs for theirs, _ in rows)


def test_every_name_of_ours_exists(rows):
    seen = 0
    for theirs, ours in rows:
        if theirs in ("", "python-ldl", "Hyper-parameters") or "`" not in ours or not theirs.startswith(("`", "–")):
            continue
        for text in re.findall(r"`([^`]+)`", ours):
            name = text.split("(")[0]
            if name.startswith("skldl."):
                module, _, attribute = name.rpartition(".")
                try:
                    assert hasattr(importlib.import_module(module), attribute), name
                except ModuleNotFoundError:  # an optional dependency is not installed
                    pytest.skip(f"{module} needs a package that is not installed")
            elif text.startswith(("label_code", '"', "skldl bench")):
                assert text.strip('"') in {*LOSSES, *COMBINATIONS, "one_hot", "skldl bench"} or "label_code" in text
            else:
                assert (
                    hasattr(skldl, name)
                    or name in MEASURES
                    or hasattr(skldl.metrics, name)
                    or hasattr(enhancement, name)
                ), name
            seen += 1
    assert seen > 60
