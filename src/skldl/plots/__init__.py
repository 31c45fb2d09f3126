"""Figures as Display objects in the manner of scikit-learn. Needs the extra ``plot``."""

from skldl.plots._dendrogram import MeasureDendrogramDisplay

__all__ = ["MeasureDendrogramDisplay"]
