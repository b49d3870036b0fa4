"""Writes the files beside it, as SciPy does: what the reader's tests read. Run in this folder."""

import numpy as np
from scipy.io import savemat

signals = {
    "rate": 1000.0,
    "row": np.array([[1.0, -2.5, np.nan]]),
    "counts": np.array([[1, 2, 300]], dtype=np.int16),
    "tall": np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]),
    "wide": np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]),
    "short": np.array([[7.0, 8.0]]),
    "title": "a run",
    "data": {"u": np.array([1.0, 2.0, 3.0])},
    "z": np.array([[1 + 1j, 2, 3]]),
    "cube": np.arange(8.0).reshape(2, 2, 2),
}
savemat("signals.mat", signals, do_compression=False)
savemat("signals-compressed.mat", signals, do_compression=True)
savemat("no-signals.mat", {"data": {"u": np.array([1.0, 2.0])}, "rate": 5.0}, do_compression=True)
