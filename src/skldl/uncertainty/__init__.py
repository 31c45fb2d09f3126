"""Uncertainty of predictions: conformal regions, spread, calibration, and the noise floor of noisy labels."""

from skldl.metrics._noise_floor import NoiseFloor, noise_floor
from skldl.metrics._skill import explainable_share
from skldl.uncertainty._calibrated import CalibratedLDL
from skldl.uncertainty._conformal import ConformalLDL
from skldl.uncertainty._region import Region, TooFewCalibrationRowsWarning
from skldl.uncertainty._spread import CoverageCurve, DirichletSpread, coverage_curve

__all__ = [
    "CalibratedLDL",
    "ConformalLDL",
    "CoverageCurve",
    "DirichletSpread",
    "NoiseFloor",
    "Region",
    "TooFewCalibrationRowsWarning",
    "coverage_curve",
    "explainable_share",
    "noise_floor",
]
