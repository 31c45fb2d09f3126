"""How sure a prediction is: regions that cover, spread, calibration, and the floor that noise in the labels sets."""

from skldl.uncertainty._conformal import ConformalLDL
from skldl.uncertainty._region import Region, TooFewCalibrationRowsWarning

__all__ = ["ConformalLDL", "Region", "TooFewCalibrationRowsWarning"]
