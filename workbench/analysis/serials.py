"""Serial numbers as Spark expressions [RFC 1982]: what `workbench.serial` is for single numbers.

A number on the circle is the low 32 bits of a long one, of one below zero as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import Column

__all__ = ["add", "signed", "steps", "used"]

HALF = 1 << 31
CIRCLE = 1 << 32
LARGEST = CIRCLE - 1


def add(number: Column, by: Column) -> Column:
    """The serial number so many steps on (back if negative)."""
    return (number + by).bitwiseAND(LARGEST)


def steps(later: Column, earlier: Column) -> Column:
    """How many steps forward lead from the one to the other: 0 to 2^32 − 1."""
    return (later - earlier).bitwiseAND(LARGEST)


def signed(one: Column, other: Column) -> Column:
    """How far one is ahead of the other: −2^31 to 2^31 − 1."""
    return (one - other + HALF).bitwiseAND(LARGEST) - HALF


def used(granted: Column, at: Column, now: Column) -> Column:
    """How many steps lead from where so much was granted to here; negative: it is behind.

    A grant of half a circle or more is used up forwards, further than `signed` can tell.
    """
    forward = steps(now, at)
    return F.when((granted >= HALF) & (forward <= granted), forward).otherwise(signed(now, at))
