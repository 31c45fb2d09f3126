"""Figures as Display objects, like those of scikit-learn. Needs the extra ``plot``.

The numbers of a figure are attributes of its display. ``from_estimator`` and ``from_predictions`` (or ``from_scores``
for a table of results) compute the numbers and draw the figure; ``plot(ax)`` draws it again, into given axes or a new
figure.
"""

from skldl.plots._calibration import CalibrationCurve, CalibrationDisplay, calibration_curve
from skldl.plots._cases import LabelCasesDisplay
from skldl.plots._convergence import ConvergenceDisplay
from skldl.plots._coverage import CoverageDisplay
from skldl.plots._critical_difference import CriticalDifferenceDisplay
from skldl.plots._dendrogram import MeasureDendrogramDisplay
from skldl.plots._distribution import DistributionDisplay
from skldl.plots._examples import ExamplesDisplay
from skldl.plots._flow import FlowDisplay
from skldl.plots._label_effects import LabelEffectsDisplay
from skldl.plots._learning import LearningCurveDisplay
from skldl.plots._manifold import ManifoldDisplay, decorrelation_stretch
from skldl.plots._missing_rate import MissingRateDisplay
from skldl.plots._rank_heatmap import RankHeatmapDisplay
from skldl.plots._raters import RatersDisplay
from skldl.plots._residuals import ResidualsDisplay
from skldl.plots._sensitivity import SensitivityDisplay
from skldl.plots._skill import SkillDisplay
from skldl.plots._style import style
from skldl.plots._ternary import TernaryDisplay
from skldl.plots._time import QualityTimeDisplay

__all__ = [
    "CalibrationCurve",
    "CalibrationDisplay",
    "ConvergenceDisplay",
    "CoverageDisplay",
    "CriticalDifferenceDisplay",
    "DistributionDisplay",
    "ExamplesDisplay",
    "FlowDisplay",
    "LabelCasesDisplay",
    "LabelEffectsDisplay",
    "LearningCurveDisplay",
    "ManifoldDisplay",
    "MeasureDendrogramDisplay",
    "MissingRateDisplay",
    "QualityTimeDisplay",
    "RankHeatmapDisplay",
    "RatersDisplay",
    "ResidualsDisplay",
    "SensitivityDisplay",
    "SkillDisplay",
    "TernaryDisplay",
    "calibration_curve",
    "decorrelation_stretch",
    "style",
]
