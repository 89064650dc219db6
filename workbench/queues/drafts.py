"""Frozen values made quickly: for what there is one of for each message."""

from __future__ import annotations

from dataclasses import fields, make_dataclass
from typing import Any


def draft_of(cls: type) -> type[Any]:
    """A class with the slots of a frozen dataclass, filled by position and five times as quickly.

    A draft becomes a value when its `__class__` is set to `cls`, which Python allows because the
    layout of both is the same.
    """
    names = [item.name for item in fields(cls)]
    return make_dataclass(f"_{cls.__name__}Draft", names, slots=True)
