"""`Budget`: the bytes that everything in one model file may take together when it is unpacked."""

import os

from skldl.exceptions import ModelFileError

BYTES_PER_VALUE = 64
"""Charged for each value of JSON beside its text: what ``[],`` takes. A vocabulary of 50,000 words is charged 105 MB,
and loading it takes 117 MB."""


class Budget:
    """The bytes that a model may still take when unpacked; every part takes its share before it is unpacked.

    Parameters
    ----------
    path : str or path
        The model file, for the error.
    max_bytes : int
        Bytes that all parts may take together.
    """

    def __init__(self, path: str | os.PathLike[str], max_bytes: int) -> None:
        self._path, self._max_bytes, self._left = path, max_bytes, max_bytes

    def take(self, n_bytes: int) -> None:
        """Take the share of one part; raise `ModelFileError` if all parts are more than may be unpacked."""
        self._left -= n_bytes
        if self._left < 0:
            raise ModelFileError(
                f"{self._path} would take more than {self._max_bytes:,} bytes when unpacked. If you know who made it, "
                f"load it with a larger limit: skldl.load(path, max_bytes={10 * self._max_bytes})."
            )

    def take_values(self, text: bytes) -> None:
        """Take the share of the values that a text of JSON describes, beside the text itself."""
        # each value follows one of these characters; those within text are counted too, which errs on the safe side
        self.take(BYTES_PER_VALUE * sum(text.count(mark) for mark in (b"[", b"{", b",", b":")))
        if not text.isascii() or b"\\ud" in text.lower():
            self.take(3 * len(text))  # one character outside of the basic plane gives all of a text four bytes each
