"""A weight matrix, laid out so that a block of tokens multiplies fast."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from dflashctl.reference.weights import Array

_BLOCK = 16  # the rows of one DFlash block at most
_SMALL = 1_000_000  # OpenBLAS skips its packing pass up to this many multiplications
_NARROWEST = 32


class Matrix:
    """The linear map from ``in`` to ``out``: whole [in, out], and in column panels [panels, in, out / panels].

    At the 8 to 16 rows of a block OpenBLAS spends most of its time repacking the weight, unless the product is
    small; panels of a suitable width are, and made the tiny pair decode 1.4 times faster at blocks 8 and 16. A single
    row is fastest with the whole matrix. One that is too large for panels is kept whole only.
    """

    def __init__(self, weight: Array) -> None:
        """Take a checkpoint's ``weight`` [out, in]."""
        rows, columns = weight.shape
        self.whole: Array = np.ascontiguousarray(weight.T)
        self.panels: Array | None = None
        width = _panel_width(columns, rows)
        if width:
            cut = weight.reshape(rows // width, width, columns)
            self.panels = np.ascontiguousarray(cut.transpose(0, 2, 1))

    def __call__(self, x: Array) -> Array:
        """Return ``x`` [rows, in] times the matrix: [rows, out]."""
        if self.panels is None or len(x) == 1:
            product: Array = x @ self.whole
        else:
            product = (x @ self.panels).transpose(1, 0, 2).reshape(len(x), -1)
        return product


def _panel_width(columns: int, rows: int) -> int:
    """Return the widest panel that divides ``rows`` evenly and keeps a block's product small; 0 for none."""
    limit = min(_SMALL // (_BLOCK * columns), rows)
    return max((width for width in range(_NARROWEST, limit + 1) if rows % width == 0), default=0)
