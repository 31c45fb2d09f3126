"""`ManifoldDisplay`: three labels as red, green and blue, over a surface in feature space (Fig. 4 of [1]_).

References
----------
.. [1] X. Geng, "Label distribution learning", IEEE Transactions on Knowledge and Data Engineering 28(7), 2016.
.. [2] A. R. Gillespie, A. B. Kahle and R. E. Walker, "Color enhancement of highly correlated images. I. Decorrelation
   and HSI contrast stretches", Remote Sensing of Environment 20(3), 1986.
"""

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes

from skldl.exceptions import DimensionError
from skldl.metrics import kullback_leibler
from skldl.plots._display import PredictionDisplay, named_predictions
from skldl.plots._style import columns_that_fit, panels, plain, width_of
from skldl.utils.typing import FloatArray


def decorrelation_stretch(
    image: npt.ArrayLike, *, reference: npt.ArrayLike | None = None, clip: float = 0.01
) -> FloatArray:
    r"""Spread the colours of an image by removing the correlation between its channels.

    With mean :math:`\mu` and covariance :math:`E \Lambda E^\top` of the reference's pixels, each pixel becomes
    :math:`E \Lambda^{-1/2} E^\top (x - \mu)`: uncorrelated channels of unit variance, each as similar as possible to
    the original one. Then one linear scale for all channels maps the quantiles ``clip`` and ``1 - clip`` of the
    reference to 0 and 1. Directions without variance, such as the sum of a distribution, are ignored.

    Parameters
    ----------
    image : array-like of shape (..., n_channels)
        The image, or a list of its pixels.
    reference : array-like of shape (..., n_channels), default=None
        Image from which mean, covariance and scale are computed; ``image`` itself if None. To compare images by colour,
        pass the same reference for all.
    clip : float, default=0.01
        Fraction of the reference's values that is cut off at either end.

    Returns
    -------
    ndarray of shape (..., n_channels)
        The stretched image, in [0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> from skldl.plots import decorrelation_stretch
    >>> pixels = np.random.default_rng(0).dirichlet([80, 90, 100], size=1000)
    >>> stretched = decorrelation_stretch(pixels)
    >>> round(float(np.ptp(pixels)), 1), float(np.ptp(stretched))
    (0.3, 1.0)
    """
    if not 0 <= clip < 0.5:
        raise ValueError(f"clip={clip!r} is cut off at both ends and must lie in [0, 0.5).")
    values = np.asarray(image, dtype=np.float64)
    base = values if reference is None else np.asarray(reference, dtype=np.float64)
    if values.ndim < 2 or base.ndim < 2 or values.shape[-1] != base.shape[-1]:
        raise DimensionError(
            f"image has shape {values.shape} and reference {base.shape}. The last axis of both must be the channels."
        )
    pixels = base.reshape(-1, base.shape[-1])
    mean = pixels.mean(axis=0)
    variances, directions = np.linalg.eigh(np.cov(pixels, rowvar=False, ddof=0))
    kept = variances > variances.max() * 1e-10  # smaller ones are rounding errors of a variance of zero
    scales = np.where(kept, 1.0 / np.sqrt(np.where(kept, variances, 1.0)), 0.0)
    whitening = (directions * scales) @ directions.T
    low, high = np.quantile((pixels - mean) @ whitening, [clip, 1 - clip])
    if high == low:  # a reference of one colour cannot be spread
        return np.full(values.shape, 0.5)
    return np.asarray(np.clip(((values - mean) @ whitening - low) / (high - low), 0.0, 1.0))


@dataclass(eq=False)
class ManifoldDisplay(PredictionDisplay):
    """Ground truth and each prediction as an image whose red, green and blue are the three labels.

    The decorrelation stretch of the ground truth is applied to all images, so that the same colour means the same
    distribution in each of them.

    Parameters
    ----------
    true : ndarray of shape (height, width, 3)
        The real distributions.
    predicted : dict of ndarray of shape (height, width, 3)
        From the name of each model to its predictions.

    Attributes
    ----------
    axes_ : list of Axes
        The panels, ground truth first, once drawn.
    figure_ : Figure
        The figure, once drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from skldl.plots import ManifoldDisplay
    >>> D = np.random.default_rng(0).dirichlet([2, 3, 4], size=25)
    >>> display = ManifoldDisplay.from_predictions(D, {"uniform": np.full((25, 3), 1 / 3)})
    >>> [ax.get_title().split()[0] for ax in display.axes_]
    ['ground', 'uniform']
    """

    true: FloatArray
    predicted: dict[str, FloatArray]

    @classmethod
    def from_predictions(
        cls,
        D_true: Any,
        D_pred: Any,
        *,
        shape: tuple[int, int] | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Draw the figure from distributions over a grid of points.

        Parameters
        ----------
        D_true : array-like or DataFrame of shape (n_samples, 3)
            True distributions, the points of the grid row by row.
        D_pred : array-like or mapping
            Predicted distributions, or several tables of them by name.
        shape : tuple of int, default=None
            Rows and columns of the grid; a square if None.
        ax : Axes, default=None
            Where to draw; its area is divided into panels. A new figure if None.

        Returns
        -------
        ManifoldDisplay
            The figure, drawn.
        """
        true, predicted = named_predictions(D_true, D_pred)
        n_samples, n_labels = true.shape
        if n_labels != 3:
            raise DimensionError(f"The colours need three labels, but there are {n_labels}.")
        rows, columns = shape or (math.isqrt(n_samples),) * 2
        if rows * columns != n_samples:
            raise DimensionError(f"{n_samples} points do not fill a grid of {rows} × {columns}. Pass its shape.")
        images = {name: table.reshape(rows, columns, 3) for name, table in predicted.items()}
        return cls(true.reshape(rows, columns, 3), images).plot(ax)

    def _shape(self, width: float | None) -> tuple[int, int]:
        """Numbers of rows and columns of panels."""
        n_images = 1 + len(self.predicted)
        n_columns = columns_that_fit(width, min(n_images, 4))
        return math.ceil(n_images / n_columns), n_columns

    def _size(self, width: float | None) -> tuple[float, float]:
        n_rows, n_columns = self._shape(width)
        return 1.9 * n_columns, 2.2 * n_rows

    def _draw(self, ax: Axes | None) -> None:
        truth = self.true.reshape(-1, 3)
        images = {"ground truth": self.true, **self.predicted}
        self.figure_, grid = panels(ax, *self._shape(width_of(ax)), self.size())
        cells = [panel for row in grid for panel in row]
        self.axes_ = cells[: len(images)]
        for panel, (name, image) in zip(cells, images.items(), strict=False):
            panel.imshow(decorrelation_stretch(image, reference=self.true), interpolation="nearest")
            title = plain(name)
            if name in self.predicted:
                title += f"\nKL {kullback_leibler(truth, image.reshape(-1, 3)):.2g}"
            panel.set_title(title)
        for panel in cells:
            panel.set_axis_off()
