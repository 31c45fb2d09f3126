"""Export of models: ONNX graphs (extra ``onnx``) and model cards."""

from typing import TYPE_CHECKING

from skldl.utils.dependencies import lazy_names

if TYPE_CHECKING:
    from skldl.export._card import model_card
    from skldl.export._onnx import to_onnx

__all__ = ["model_card", "to_onnx"]

__getattr__ = lazy_names(__name__, cli={"_card": ("model_card",)}, onnx={"_onnx": ("to_onnx",)})
