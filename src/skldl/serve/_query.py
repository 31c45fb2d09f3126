"""Parameters of an address such as ``/predict?keep=person&level=0.8``: the options of ``skldl predict``."""

from typing import NamedTuple
from urllib.parse import parse_qsl

from skldl.serve._bodies import DIGITS
from skldl.serve._errors import Refusal
from skldl.serve._model import GIVEN, TRUE, ServedModel
from skldl.tabular._interval_columns import COVERS, LEVEL
from skldl.utils.spelling import split_list


class Query(NamedTuple):
    """What a request for predictions asks for; ``format`` is empty if it is not named."""

    format: str = ""
    keep: tuple[str, ...] = ()
    digits: int = DIGITS
    level: float = LEVEL
    covers: str = GIVEN


DEFAULTS = Query()


def read_query(query_string: bytes, model: ServedModel) -> Query:
    """Read and check the parameters after the question mark; other names and names given twice are refused."""
    given: dict[str, str] = {}
    for name, value in parse_qsl(query_string.decode("latin-1"), keep_blank_values=True):
        if name not in Query._fields:
            raise Refusal(400, f"{name[:40]!r} is not a parameter of predict. Use {', '.join(Query._fields)}.")
        if name in given:
            raise Refusal(400, f"The parameter {name} is given twice. Give it once; columns are separated by commas.")
        given[name] = value
    return Query(
        given.get("format", ""),
        tuple(split_list(given["keep"])) if "keep" in given else (),
        _digits(given["digits"]) if "digits" in given else DIGITS,
        _level(given["level"], model) if "level" in given else LEVEL,
        _covers(given["covers"], model) if "covers" in given else GIVEN,
    )


def _digits(text: str) -> int:
    if len(text) > 2 or not text.isascii() or not text.isdecimal() or not 1 <= int(text) <= 17:
        raise Refusal(400, f"digits={text[:20]} must be a number from 1 to 17.")
    return int(text)


def _level(text: str, model: ServedModel) -> float:
    try:
        level = float(text)
    except ValueError:
        level = 0.0
    if not 0 < level < 1:
        raise Refusal(400, f"level={text[:20]} must be a number between 0 and 1, such as 0.9.")
    if model.intervals is None:
        raise _no_intervals(f"level={text[:20]}", model)
    return level


def _covers(text: str, model: ServedModel) -> str:
    if text not in COVERS:
        raise Refusal(400, f"covers={text[:20]} is not one of {', '.join(COVERS)}.")
    if model.intervals is None:
        raise _no_intervals(f"covers={text}", model)
    if text == TRUE and model.true_intervals is None:
        raise Refusal(
            422,
            f"covers=true: the model {model.name} does not know the votes behind its calibration rows. Leave it out, "
            "or make the model from votes: skldl fit --intervals with --kind counts or --kind votes.",
        )
    return text


def _no_intervals(parameter: str, model: ServedModel) -> Refusal:
    return Refusal(
        422, f"{parameter}: the model {model.name} keeps no calibration rows. Make it with skldl fit --intervals."
    )
