"""Statistics of the orders in which a loader of task 4.7 shuffles examples."""

import numpy as np

from .strided import Array
from .verdicts import Wrong

SHORT_ORDER, LONG_ORDER = 5, 8000  # examples whose orders are counted


def check_mixed(order: Array, case_text: str) -> None:
    """Raise `Wrong` if examples stay near their places."""
    quarter = LONG_ORDER // 4
    for k in range(4):
        part = order[k * quarter : (k + 1) * quarter]
        shares = np.histogram(part, bins=4, range=(0, LONG_ORDER))[0] / quarter
        if np.abs(shares - 0.25).max() > 0.06:  # six standard deviations
            raise Wrong(
                f"quarter {k} of the order has {shares.round(2).tolist()} from each quarter of the data set; "
                "expected is 0.25",
                case_text=case_text,
                kind="mixed",
            )
    if np.mean(np.abs(np.diff(order)) == 1) > 0.01:
        raise Wrong("neighbors of the data set stay neighbors", case_text=case_text, kind="mixed")


def check_uniform(orders: Array, case_text: str) -> None:
    """Raise `Wrong` if an example is at some place, or before another one, too often or too rarely."""
    expected = len(orders) / SHORT_ORDER
    places = np.array([[np.sum(orders[:, place] == k) for place in range(SHORT_ORDER)] for k in range(SHORT_ORDER)])
    neighbors = SHORT_ORDER * orders[:, :-1].astype(int) + orders[:, 1:].astype(int)
    pairs = np.bincount(neighbors.ravel(), minlength=SHORT_ORDER * SHORT_ORDER).reshape(SHORT_ORDER, SHORT_ORDER)
    for counts, what in ((places, "at a place"), (pairs[~np.eye(SHORT_ORDER, dtype=bool)], "directly before another one")):
        if counts.min() < 0.5 * expected or counts.max() > 1.5 * expected:  # six standard deviations
            raise Wrong(
                f"of {len(orders)} epochs an example is {what} {counts.min()} to {counts.max()} times; expected about "
                f"{expected:.0f}",
                case_text=case_text,
                kind="uniform",
            )
