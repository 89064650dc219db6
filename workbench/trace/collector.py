"""Python's own collector, for work that makes many objects and hardly a cycle."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["seldom_collected"]

MOST_YOUNG = 100_000
"""So many more objects than when it looked last, of those that may stand in a cycle."""


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Lets Python look for unreachable cycles only now and then.

    Runs, imports and folds make millions of objects that stay: to look at each of them again and
    again is a twelfth to a sixth of their time.
    """
    before = gc.get_threshold()
    gc.set_threshold(MOST_YOUNG, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
