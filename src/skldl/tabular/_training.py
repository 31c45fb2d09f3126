"""`fit_table`: from a table to a fitted pipeline that says what it is, how it was chosen and how good it is."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sklearn.pipeline import Pipeline

from skldl.data._labels import label_values
from skldl.data._roles import training_set
from skldl.exceptions import DataError
from skldl.experiments import Candidate
from skldl.tabular._choice import FOLDS, Choice, Trial, choose_model
from skldl.tabular._encoder import TableEncoder
from skldl.tabular._models import AUTO, MODEL_STEP, find_model, table_pipeline, with_settings


@dataclass(frozen=True)
class FittedTable:
    """A model of a table.

    Attributes
    ----------
    model : Pipeline
        Encoder and estimator, fitted: ``model.predict(table)`` gives distributions.
    description : dict
        What it is, in plain values: `skldl.save` keeps it with the model, ``skldl inspect`` shows it.
    choice : Choice
        How it was chosen.
    why : list of str
        The same in words.
    warnings : list of str
        What the user should know.
    """

    model: Pipeline
    description: dict[str, Any]
    choice: Choice
    why: list[str]
    warnings: list[str]


def fit_table(
    table: Any,
    labels: str | Sequence[str],
    *,
    kind: str = "distribution",
    model: str = "auto",
    settings: Sequence[str] = (),
    weight: str = "",
    groups: str = "",
    drop: Sequence[str] = (),
    text: Sequence[str] = (),
    categories: Sequence[str] = (),
    values: str = "",
    folds: int = FOLDS,
    seed: int = 0,
    source: str = "",
    on_progress: Callable[[str], None] | None = None,
) -> FittedTable:
    """Train a model on a table, and estimate by cross-validation how good it is.

    Parameters
    ----------
    table : DataFrame
        Features and labels.
    labels : str or sequence of str
        The label columns: names or patterns such as ``emo_*``.
    kind : {"distribution", "counts", "scores", "votes", "label"}, default="distribution"
        What the label columns hold.
    model : str, default="auto"
        Name of a model in any spelling, or "auto": the best of a few by cross-validation.
    settings : sequence of str, default=()
        Parameters of the named model, such as ``alpha=0.1``.
    weight, groups : str, default=""
        Columns with the weight and the group of each row.
    drop : sequence of str, default=()
        Columns to leave out.
    text, categories : sequence of str, default=()
        Columns to take as prose, and as categories though they hold numbers.
    values : str, default=""
        Numbers that the labels stand for, separated by commas; by default the labels' names, if they are numbers.
    folds : int, default=5
        Number of folds of the cross-validation.
    seed : int, default=0
        Seed of everything that is drawn.
    source : str, default=""
        Where the table came from, for the description.
    on_progress : callable, default=None
        Called with a word on what is going to run.

    Returns
    -------
    FittedTable
        The fitted pipeline and what there is to say about it.

    Examples
    --------
    >>> import pandas as pd
    >>> from skldl.tabular import fit_table
    >>> table = pd.DataFrame({"x": range(40)}).assign(no=lambda t: 1 - t.x / 50, yes=lambda t: t.x / 50)
    >>> fitted = fit_table(table, ["no", "yes"], model="sa-bfgs")
    >>> fitted.model.predict(pd.DataFrame({"x": [20]})).round(1)
    array([[0.6, 0.4]])
    >>> fitted.choice.beats_mean
    True
    """
    if folds < 2:
        raise DataError(f"{folds} folds: at least 2 are needed to test a model on rows that it has not seen.")
    if seed < 0:
        raise DataError(f"seed = {seed} must be 0 or more.")
    training = training_set(
        table, labels, kind=kind, weight=weight, groups=groups, drop=drop, text=text, categories=categories
    )
    names = [str(name) for name in training.D]
    numbers = label_values(names, values)
    candidates = candidates(model, settings)
    encoder = TableEncoder(text=tuple(text), categories=tuple(categories))
    choice = choose_model(training, candidates, encoder, folds=folds, seed=seed, on_progress=on_progress)
    best = choice.best
    if on_progress is not None:
        on_progress(f"fit of {best.candidate.name} on all rows")
    pipeline = table_pipeline(best.candidate.make(best.setting, seed), encoder)
    extra = {} if training.weight is None else {f"{MODEL_STEP}__sample_weight": training.weight}
    pipeline.fit(training.X, training.D, **extra)
    why = _why(choice, auto=model == "auto", n_rows=len(training.X), grouped=bool(groups))
    description = {
        "source": source,
        "rows": len(training.X),
        "labels": names,
        "values": numbers,
        "kind": kind,
        "label_columns": training.label_columns,
        "features": dict(pipeline[0].kinds_),
        "roles": {"weight": weight, "groups": groups, "dropped": list(drop)},
        "model": best.candidate.name,
        "estimator": " ".join(repr(pipeline.named_steps[MODEL_STEP]).split()),
        "why": why,
        "candidates": [
            {"model": trial.candidate.name, "setting": _plain(trial.setting), "kullback_leibler": trial.divergence}
            for trial in choice.candidates
        ],
        "score": {
            "kullback_leibler": best.divergence,
            "kullback_leibler_of_mean": choice.mean_divergence,
            "skill": choice.skill[0],
            "skill_low": choice.skill[1],
            "skill_high": choice.skill[2],
            "folds": choice.n_folds,
            "rows": choice.n_rows,
        },
    }
    return FittedTable(pipeline, description, choice, why, [*training.notes, *_doubts(choice)])


def candidates(model: str, settings: Sequence[str] = ()) -> list[Candidate]:
    """The models to choose from: a few for "auto", or the one that is named.

    Parameters
    ----------
    model : str
        "auto" or a name.
    settings : sequence of str, default=()
        Parameters of the named one.

    Returns
    -------
    list of Candidate
        The candidates.
    """
    if model.casefold() != "auto":
        return [with_settings(find_model(model), settings)]
    if settings:
        raise DataError(f"--set {settings[0]}: parameters belong to a model. Name it with --model.")
    return list(AUTO)


def _plain(setting: dict[str, Any]) -> dict[str, Any]:
    return {name: value if isinstance(value, int | float | str) else repr(value) for name, value in setting.items()}


def show_setting(setting: dict[str, Any]) -> str:
    """Write a setting for a person: the parameter without the step it belongs to.

    Examples
    --------
    >>> show_setting({"regressor__min_samples_leaf": 20})
    ' (min_samples_leaf=20)'
    """
    told = ", ".join(f"{name.rpartition('__')[2]}={value}" for name, value in setting.items())
    return f" ({told})" if told else ""


def _name(trial: Trial) -> str:
    return f"{trial.candidate.name}{show_setting(trial.setting)}"


def _why(choice: Choice, *, auto: bool, n_rows: int, grouped: bool) -> list[str]:
    best = choice.best
    rows = f"{choice.n_rows} rows" if choice.n_rows == n_rows else f"{choice.n_rows} of {n_rows} rows"
    together = ", groups kept together" if grouped else ""
    lines = [
        f"{_name(best)}: {'the least' if auto else 'a'} held-out Kullback-Leibler divergence of {best.divergence:.4g} "
        f"in {choice.n_folds} folds of {rows}{together}."
    ]
    others = [trial for trial in choice.candidates if trial is not best]
    if others:
        lines.append(f"The others: {', '.join(f'{_name(trial)} {trial.divergence:.4g}' for trial in others)}.")
    skill, low, high = choice.skill
    lines.append(
        f"Skill {skill:.1%} (95 % interval {low:.1%} to {high:.1%}): the part of the divergence of always predicting "
        f"the mean, {choice.mean_divergence:.4g}, that it takes away."
    )
    return lines


def _doubts(choice: Choice) -> list[str]:
    doubts = [f"{name} could not be tried: {reason}" for name, reason in choice.failures.items()]
    if choice.skill[0] <= 0:
        doubts.append(
            "Nothing beats predicting the mean distribution for every row: these columns tell nothing about the "
            "labels, or there are too few rows."
        )
    elif not choice.beats_mean:
        doubts.append(
            "It is not clearly better than predicting the mean distribution: its interval reaches below zero."
        )
    return doubts
