"""Serial numbers as Spark expressions [RFC 1982]: what `workbench.serial` is for single numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import Column

__all__ = ["add", "difference", "left_of", "signed", "steps", "used"]

HALF = 1 << 31
CIRCLE = 1 << 32
LARGEST = CIRCLE - 1


def add(number: Column, by: Column) -> Column:
    """The serial number so many steps on (back if negative)."""
    return F.pmod(number + by, F.lit(CIRCLE))


def steps(later: Column, earlier: Column) -> Column:
    """How many steps forward lead from the one to the other: 0 to 2^32 − 1."""
    return F.pmod(later - earlier, F.lit(CIRCLE))


def difference(one: Column, other: Column) -> Column:
    """How far one is ahead of the other, negative if behind; null if half a circle apart."""
    forward = steps(one, other)
    return F.when(forward < HALF, forward).when(forward > HALF, forward - F.lit(CIRCLE))


def signed(one: Column, other: Column) -> Column:
    """How far one is ahead of the other: −2^31 to 2^31 − 1."""
    return F.pmod(one - other + F.lit(HALF), F.lit(CIRCLE)) - F.lit(HALF)


def used(granted: Column, at: Column, now: Column) -> Column:
    """How many steps lead from where so much was granted to here; negative: it is behind.

    A grant of half a circle or more is used up forwards, further than `signed` can tell.
    """
    forward = steps(now, at)
    return F.when((granted >= HALF) & (forward <= granted), forward).otherwise(signed(now, at))


def left_of(granted: Column, at: Column, now: Column) -> Column:
    """What is left of a credit or window granted at one count when the count has come to another.

    ``granted − (now − at)``, between 0 and 2^32 − 1 [AMQP 1.0, 2.6.7 and 2.5.6]. A credit of half a
    circle or more can be used up by more steps than a serial difference has: there the way is
    forward as long as it stays within the credit.
    """
    forward = steps(now, at)
    used = F.when((granted >= HALF) & (forward <= granted), forward).otherwise(difference(now, at))
    left = granted - used
    return F.when(left.isNotNull(), F.least(F.greatest(left, F.lit(0)), F.lit(LARGEST)))
