"""What is worked out of a client's words, kept for the next time: only where they are short."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import TypeVar, TypeVarTuple

WordsT = TypeVar("WordsT", str, bytes)
MoreTs = TypeVarTuple("MoreTs")
T = TypeVar("T")

KEPT = 1_024
LONG = 256


def keeps(make: Callable[[WordsT, *MoreTs], T]) -> Callable[[WordsT, *MoreTs], T]:
    """Keep the latest results of a pure function of a client's octets or text.

    A client may make these as long as a message, and nothing counts what is kept here.
    """
    kept: Callable[..., T] = lru_cache(maxsize=KEPT)(make)

    @wraps(make)
    def find(words: WordsT, *more: *MoreTs) -> T:
        return kept(words, *more) if len(words) < LONG else make(words, *more)

    return find
