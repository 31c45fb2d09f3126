"""Models for elsewhere: ONNX graphs and model cards. ONNX needs the extra ``onnx``."""

from typing import TYPE_CHECKING, Any

from skldl._extras import import_with_extra

if TYPE_CHECKING:
    from skldl.export._card import model_card
    from skldl.export._onnx import to_onnx

_HOME_OF = {"model_card": ("_card", "cli"), "to_onnx": ("_onnx", "onnx")}

__all__ = ["model_card", "to_onnx"]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'skldl.export' has no attribute {name!r}")
    module, extra = _HOME_OF[name]
    return getattr(import_with_extra(f"skldl.export.{module}", extra), name)
