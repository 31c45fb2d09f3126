"""``skldl export``: write a model as an ONNX graph, or its model card."""

from pathlib import Path

from skldl.cli._model_file import open_model
from skldl.cli._options import Flag, check_targets
from skldl.exceptions import TableError
from skldl.persistence import inspect
from skldl.utils.files import whole_file


def export(model: Path, /, *, onnx: Path | None = None, card: Path | None = None, overwrite: Flag = False) -> None:
    """Write a model as an ONNX graph, or a model card that describes it.

    The graph takes one input for each column, an array of shape (rows, 1): doubles for numbers and for yes and no, with
    NaN for a missing cell, and text for categories, with (missing) for a missing cell. Its output is distribution, of
    shape (rows, labels). It is written only if its predictions, computed by onnxruntime, equal those of the model up to
    1e-5. For instance:

        skldl export faces.skldl --onnx faces.onnx
        skldl export faces.skldl --card faces.md

    Parameters
    ----------
    model
        A model that skldl fit wrote.
    onnx
        Where to write the graph.
    card
        Where to write the card, as Markdown.
    overwrite
        Overwrite existing files.
    """
    if onnx is None and card is None:
        raise TableError("Name an output: --onnx FILE, --card FILE, or both.")
    check_targets([("--onnx", onnx), ("--card", card)], [model], overwrite=overwrite)
    made = open_model(str(model))
    if onnx is not None:
        from skldl.export import to_onnx

        difference = to_onnx(made.pipeline, onnx)
        print(f"Written to {onnx}: its predictions differ from those of the model by {difference:.1g} at most.")
    if card is not None:
        from skldl.export import model_card

        with whole_file(card) as stream:
            stream.write(model_card(inspect(model), name=model.stem).encode())
        print(f"Written to {card}. Fill in the fields in brackets.")
