"""Figures as Display objects in the manner of scikit-learn. Needs the extra ``plot``."""

from skldl.plots._dendrogram import MeasureDendrogramDisplay
from skldl.plots._label_effects import LabelEffectsDisplay

__all__ = ["LabelEffectsDisplay", "MeasureDendrogramDisplay"]
