"""`model_card`: description, training data, quality and limits of a model, as Markdown."""

from collections.abc import Mapping
from typing import Any

from skldl.metrics._skill import show_skill

_KINDS = {
    "distribution": "fractions that sum to one",
    "counts": "counts of answers",
    "scores": "scores",
    "votes": "answers of annotators",
    "label": "one label for each row",
}


def model_card(about: Mapping[str, Any], *, name: str) -> str:
    """Describe a model file.

    Parameters
    ----------
    about : mapping
        The description of a file of ``skldl fit``, from `skldl.persistence.inspect`.
    name : str
        Name of the model.

    Returns
    -------
    str
        Markdown. Fields to be filled in are in brackets.

    Examples
    --------
    >>> card = model_card({"created": "2026-01-01", "versions": {"scikit-ldl": "0.2"}, "description": {}}, name="m")
    >>> card.splitlines()[0]
    '# Model card: m'
    """
    description = about["description"]
    lines = [f"# Model card: {_plain(name)}", ""]
    lines += [
        "Predicts a distribution over labels for each row of a table.",
        "",
        "## Model",
        "",
        f"- Estimator: {_code(description.get('estimator', 'unknown'))}",
        f"- Made: {about['created']} by scikit-ldl {about['versions']['scikit-ldl']}",
        f"- Checksum (SHA-256): `{about.get('sha256', 'unknown')}`",
        f"- Training rows in the file: {_rows_in(description)}",
        "",
        "## Labels",
        "",
        *_label_lines(description),
        "",
        "## Data",
        "",
        f"- Source: {_plain(description.get('source') or '[name the source]')}",
        f"- Rows: {description.get('rows', 'unknown')}",
        *_calibration_lines(description),
        *_feature_lines(description),
        "- [Who are the people or things in the rows, how were they chosen, who gave the labels, under which terms?]",
        "",
        "## Scores",
        "",
        *_score_lines(description),
        "",
        "## Limits",
        "",
        *_limit_lines(description),
        "",
        "## Use",
        "",
        "- Intended use: [what it is for, and what it must not be used for]",
        "- Contact: [name and address]",
        "",
    ]
    return "\n".join(lines)


def _rows_in(description: Mapping[str, Any]) -> str:
    parts = [f"encoded, in {name}" for name in description.get("rows_in_model", [])]
    if kept := description.get("kept_rows"):
        parts.append(f"{len(kept['rows'])} as they were")
    return "; ".join(parts) or ("none" if "rows_in_model" in description else "unknown")


def _calibration_lines(description: Mapping[str, Any]) -> list[str]:
    rows = description.get("intervals")
    return [f"- Further rows, kept for the calibration of intervals: {rows}"] if rows else []


def _label_lines(description: Mapping[str, Any]) -> list[str]:
    labels = description.get("labels", [])
    kind = _KINDS.get(description.get("kind", ""), "unknown")
    lines = [f"- {len(labels)} labels, read from {kind}: {', '.join(map(_plain, labels))}"]
    if description.get("values"):
        lines.append(f"- They represent the numbers {', '.join(f'{value:g}' for value in description['values'])}.")
    return lines


def _feature_lines(description: Mapping[str, Any]) -> list[str]:
    features = description.get("features", {})
    lines = ["", "| column | kind | typical value |", "|---|---|---|"] if features else []
    typical = description.get("typical", {})
    for name, kind in features.items():
        value = typical.get(name)
        lines.append(f"| {_plain(name)} | {kind} | {'' if value is None else _plain(value)} |")
    return [*lines, ""] if lines else lines


_NESTED = ", and settings, pool weights and model were chosen for each fold without it"


def _score_lines(description: Mapping[str, Any]) -> list[str]:
    score = description.get("score")
    if not score:
        return ["[The file holds no scores. Evaluate the model: skldl evaluate TABLE]"]
    how = (
        f"One split: the model was judged on {score['rows']} rows that it was not fitted to."
        if score["folds"] == 1
        else f"Cross-validation with {score['folds']} folds on {score['rows']} rows; each row is predicted by models "
        f"that were fitted without it{_NESTED if score.get('nested') else ''}."
    )
    lines = [
        how,
        "",
        "| | Kullback-Leibler divergence |",
        "|---|---|",
        f"| this model | {score['kullback_leibler']:.4g} |",
        f"| the mean distribution for every row | {score['kullback_leibler_of_mean']:.4g} |",
    ]
    floor = score.get("noise_floor")
    if floor is not None:
        end = f" to {score['noise_floor_smoothed']:.4g}" if "noise_floor_smoothed" in score else ""
        lines.append(f"| noise floor: a perfect model, given so few answers a row | {floor:.4g}{end} |")
    lines += [
        "",
        f"Skill, the fraction of the divergence of the mean that the model removes: {_skill(score)}. "
        "The interval is for the models that were judged; the final one learned from more rows and may differ.",
    ]
    if score.get("explained") is not None:
        lines += [
            "",
            f"Of the divergence above the noise floor, which alone can be explained: {score['explained']:.1%}.",
        ]
    if floor is None:
        lines += [
            "",
            "Noise floor: not known. It needs counts or votes as labels: a perfect model would still have a divergence "
            "above zero where the labels are fractions of few answers.",
        ]
    return lines


def _skill(score: Mapping[str, Any]) -> str:
    """Write the skill with its interval."""
    skill, low, high = (show_skill(score[name]) for name in ("skill", "skill_low", "skill_high"))
    return f"{skill} (95 % interval {low} to {high})"


def _limit_lines(description: Mapping[str, Any]) -> list[str]:
    lines = [
        "- The scores hold for rows drawn like those of the training table. `skldl predict --monitor` and the metrics "
        "of `skldl serve` count rows that differ from them.",
        "- A category that the training table did not hold has no feature; numbers far outside its range "
        "are extrapolated.",
    ]
    score = description.get("score") or {}
    low = score.get("skill_low", 1)
    if low is None or low <= 0:
        lines.append("- It is not clearly better than the mean distribution: the interval of its skill reaches zero.")
    if description.get("roles", {}).get("groups"):
        lines.append(f"- Rows of one {_plain(description['roles']['groups'])} were kept together in the folds.")
    if description.get("failures"):
        lines.append(f"- {len(description['failures'])} settings could not be fitted during the choice of the model.")
    return lines


def _plain(text: Any) -> str:
    """Escape a text for Markdown, in one line."""
    words = _one_line(text)
    for letter in "\\`*_[]<>|#":
        words = words.replace(letter, "\\" + letter)
    return words


def _code(text: Any) -> str:
    """Write text as a code span, without backticks, which would end it."""
    return "`" + _one_line(text).replace("`", "'") + "`"


def _one_line(text: Any) -> str:
    """Write text in one line, with control characters escaped."""
    words = " ".join(str(text).split())
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in words)
