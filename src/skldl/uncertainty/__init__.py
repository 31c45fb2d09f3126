"""How sure a prediction is: regions that cover, spread, calibration, and the floor that noise in the labels sets."""

from skldl.distributions._noise_floor import NoiseFloor, explainable_share, noise_floor
from skldl.uncertainty._conformal import ConformalLDL
from skldl.uncertainty._region import Region, TooFewCalibrationRowsWarning

__all__ = ["ConformalLDL", "NoiseFloor", "Region", "TooFewCalibrationRowsWarning", "explainable_share", "noise_floor"]
