"""Draw the pictures of the README and of the pages in docs/, from data that the package contains.

Run it from anywhere: ``python docs/make_pictures.py``. It takes about a minute and writes to ``docs/pictures``.
"""

import sys
import warnings
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold

from skldl import AABP, AAKNN, PTSVM, SABFGS, SAIIS, MeanDistribution, PTBayes
from skldl.data import artificial_manifold, load_dataset, make_artificial
from skldl.plots import (
    ConvergenceDisplay,
    DistributionDisplay,
    FlowDisplay,
    LabelCasesDisplay,
    ManifoldDisplay,
    SkillDisplay,
    style,
)

FOLDER = Path(__file__).parent / "pictures"
WORD = "audacious"  # most people like it and some do not; predicted better than the median word


def models():
    """The six algorithms of the paper, with settings that suit both datasets."""
    return {
        "PT-Bayes": PTBayes(reg=0.1),
        "PT-SVM": PTSVM(),
        "AA-kNN": AAKNN(n_neighbors=10),
        "AA-BP": AABP(alpha=0.01, random_state=0),
        "SA-IIS": SAIIS(max_iter=50),
        "SA-BFGS": SABFGS(alpha=1e-4),
    }


def label_distributions(lexicon):
    """Draw label distributions: one word in three kinds of annotation, and predicted and true distributions."""
    row = lexicon.tokens.index(WORD)
    others = np.arange(lexicon.n_samples) != row
    model = SABFGS(alpha=1e-4).fit(lexicon.X[others], lexicon.D[others])
    predicted = {"SA-BFGS": model.predict(lexicon.X[[row]]), "Mean": lexicon.D[others].mean(axis=0, keepdims=True)}
    names = list(lexicon.label_names)
    with style():
        figure, (above, below) = plt.subplots(2, 1, figsize=(6.4, 4.6), layout="constrained")
        LabelCasesDisplay.from_predictions(lexicon.D[[row]], fraction=0.6, label_names=names, ax=above)
        DistributionDisplay.from_predictions(lexicon.D[[row]], predicted, label_names=names, ax=below)
        below.set_xlabel(f"ratings of the word “{WORD}” by ten people, and predictions without these")
    save(figure, "label-distributions")


def manifold():
    """Draw the artificial test manifold of the paper: true distributions and predictions of the six algorithms."""
    X, D = make_artificial(random_state=0)
    X_test, D_test = artificial_manifold()
    contenders = models() | {"Mean": MeanDistribution()}
    display = ManifoldDisplay.from_estimator({name: fitted(m, X, D) for name, m in contenders.items()}, X_test, D_test)
    save(display.figure_, "manifold")


def skill(lexicon):
    """Draw the skill of the six algorithms on held-out words, with the noise ceiling of their votes."""
    train, test = next(KFold(5, shuffle=True, random_state=0).split(lexicon.X))
    predicted = {
        name: fitted(model, lexicon.X[train], lexicon.D[train]).predict(lexicon.X[test])
        for name, model in models().items()
    }
    floor = lexicon.noise_floor(["kullback_leibler"])["kullback_leibler"]
    display = SkillDisplay.from_predictions(
        lexicon.D[test],
        predicted,
        D_reference=lexicon.D[train].mean(axis=0, keepdims=True),
        ceiling=floor.value,
        title="sentiment lexicon",
    )
    save(display.figure_, "skill")


def convergence():
    """Draw the loss of SA-IIS and SA-BFGS over the iterations, down to the same optimum."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the picture shows how far it gets
        fits = {"SA-IIS": SAIIS(max_iter=300, tol=0), "SA-BFGS": SABFGS()}
        X, D = make_artificial(random_state=0)
        display = ConvergenceDisplay.from_estimator({name: model.fit(X, D) for name, model in fits.items()})
    save(display.figure_, "convergence")


def fitted(model, X, D):
    """Fit a model; one that stops at its limit of iterations is drawn as well."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # see above
        return model.fit(X, D)


def flow():
    """Draw how label distribution learning differs from classification; narrow enough for phones."""
    with style():
        figure, ax = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
    FlowDisplay().plot(ax)
    save(figure, "flow")


def save(figure, name):
    """Write a small PNG file and print its path."""
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"{name}.png"
    figure.savefig(path, dpi=110, metadata={"Software": None}, pil_kwargs={"optimize": True})
    plt.close(figure)
    print(f"{path.name}: {path.stat().st_size // 1024} KiB")


def main():
    """Make all pictures."""
    mpl.use("Agg")
    lexicon = load_dataset("lexicon")
    label_distributions(lexicon)
    flow()
    convergence()
    manifold()
    skill(lexicon)


if __name__ == "__main__":
    sys.exit(main())
