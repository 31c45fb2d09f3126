"""Messages of `fit_table` about its choice: reasons and cautions as sentences, numbers for the description."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from sklearn.pipeline import Pipeline

from skldl.exceptions import Message, Parameter
from skldl.tabular._choice import ROUNDING, Choice, Trial
from skldl.tabular._kept_rows import rows_in


def _plain(setting: Mapping[str, Any]) -> dict[str, Any]:
    """A setting in plain values, its parameters without the steps they belong to."""
    return {
        name.rpartition("__")[2]: value if isinstance(value, int | float | str) else repr(value)
        for name, value in setting.items()
    }


def show_setting(setting: Mapping[str, Any]) -> str:
    """Format a setting: the parameter without the step of the pipeline.

    Examples
    --------
    >>> show_setting({"regressor__min_samples_leaf": 20})
    ' (min_samples_leaf=20)'
    """
    text = ", ".join(f"{name.rpartition('__')[2]}={value}" for name, value in setting.items())
    return f" ({text})" if text else ""


def _failures(choice: Choice) -> list[str]:
    return [f"{failure.candidate}{show_setting(failure.setting)}: {failure.reason}" for failure in choice.failures]


def _name(trial: Trial) -> str:
    return f"{trial.candidate.name}{show_setting(trial.setting)}"


def reasons(choice: Choice, *, auto: bool, n_rows: int, grouped: bool) -> list[str]:
    """Reasons for the choice of a candidate and its expected quality, as sentences."""
    best, estimate = choice.best, choice.estimate
    rows = f"{choice.n_rows} rows" if choice.n_rows == n_rows else f"{choice.n_rows} of {n_rows} rows"
    together = ", groups kept together" if grouped else ""
    lines = [
        f"{_name(best)}: {'the least' if auto else 'a'} held-out Kullback-Leibler divergence of {best.divergence:.4g} "
        f"in {choice.n_folds} folds of {rows}{together}."
    ]
    others = [trial for trial in choice.candidates if trial is not best]
    if others:
        lines.append(f"The others: {', '.join(f'{_name(trial)} {trial.divergence:.4g}' for trial in others)}.")
    chosen = "" if len(set(map(str, estimate.choices))) == 1 else ", with the choice made anew from the other folds"
    lines.append(f"{choice.expectation} Each fold is judged by models that have not seen it{chosen}.")
    return lines


def doubts(choice: Choice, n_rows: int, *, pool: bool) -> list[str]:
    """Warnings about the model."""
    counts = Counter(_failures(choice))
    found = [f"Could not be tried in {count} of {choice.n_folds} folds: {line}" for line, count in counts.items()]
    if choice.n_rows < n_rows and pool:
        found.append(f"The estimate rests on {choice.n_rows} of {n_rows} rows, drawn at random.")
    elif choice.n_rows < n_rows:
        found.append(
            Message(
                f"The model was chosen on {choice.n_rows} of {n_rows} rows, drawn at random, and learned "
                "from all of them. ",
                Parameter("selection_rows"),
                " changes the number.",
            )
        )
    return [*found, *choice.notes, *doubts_on_skill(choice)]


def doubts_on_skill(choice: Choice) -> list[str]:
    """Warnings about a model that is no better than the mean distribution, or not clearly."""
    tried = [trial.candidate for trial in choice.candidates]
    if choice.best.candidate.is_baseline:
        if len(tried) == 1:  # it was asked for, and nothing else was tried
            return []
        return [
            "No model is better than predicting the mean distribution for every row: these columns do not predict the "
            "labels, or there are too few rows."
        ]
    if choice.skill[0] <= ROUNDING:
        model = "This model" if len(tried) == 1 else "The choice, made anew from other rows,"
        return [
            Message(
                f"{model} is not better than predicting the mean distribution for every row (",
                Parameter("model", "mean"),
                ").",
            )
        ]
    if not choice.beats_mean:
        return ["It is not clearly better than predicting the mean distribution: its interval reaches below zero."]
    return []


def described_model(
    pipeline: Pipeline, choice: Choice, why: list[str], floor_numbers: Mapping[str, Any]
) -> dict[str, Any]:
    """The model, its candidates and its expected score in plain values, for the description in the model file."""
    return {
        "features": dict(pipeline[0].kinds_),
        "rows_in_model": rows_in(pipeline),
        "model": choice.best.candidate.name,
        "estimator": " ".join(repr(pipeline[-1]).split()),
        "why": why,
        "candidates": [
            {"model": trial.candidate.name, "setting": _plain(trial.setting), "kullback_leibler": trial.divergence}
            for trial in choice.candidates
        ],
        "failures": _failures(choice),
        "score": {
            "kullback_leibler": choice.estimate.loss,
            "kullback_leibler_of_mean": choice.estimate.reference_loss,
            "skill": choice.skill[0],
            "skill_low": choice.skill[1],
            "skill_high": choice.skill[2],
            "nested": choice.nested,
            "folds": choice.n_folds,
            "rows": choice.n_rows,
            **floor_numbers,
        },
    }
