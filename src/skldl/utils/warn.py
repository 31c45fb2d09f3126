"""Warnings that point at the caller's line, however deep inside the package they arise."""

import os
import sys
import warnings

_PACKAGE = os.path.dirname(os.path.dirname(__file__)) + os.sep


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Issue a warning that points at the line that called the package.

    A fixed ``stacklevel`` cannot do this: frames of the standard library or of joblib can stand in between. The line is
    the one that entered the package; if scikit-learn (a pipeline, a search) or joblib called ``fit``, it is theirs.

    Parameters
    ----------
    message : str
        The text, which may be a `skldl.exceptions.Message`.
    category : type of Warning, default=UserWarning
        The class of the warning.

    Examples
    --------
    >>> import warnings
    >>> from skldl.utils.warn import warn
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn("what to do")
    >>> str(caught[0].message)
    'what to do'
    """
    frame, depth, outermost = sys._getframe(), 1, 1
    while frame is not None:
        if frame.f_code.co_filename.startswith(_PACKAGE):
            outermost = depth
        frame, depth = frame.f_back, depth + 1  # type: ignore[assignment]  # None ends the loop
    warnings.warn(message, category, stacklevel=outermost + 1)
