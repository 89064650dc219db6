"""Python's garbage collector, for work that makes many objects and hardly a cycle."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["seldom_collected"]

MOST_YOUNG = 100_000
"""How many objects may be added, of those that can be part of a cycle, before it looks again."""


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Lets Python look for unreachable cycles only now and then.

    Runs, imports and folds make millions of objects that stay; looking at each of them again and
    again takes a twelfth to a sixth of their time.
    """
    before = gc.get_threshold()
    gc.set_threshold(MOST_YOUNG, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
