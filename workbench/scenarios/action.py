"""A learner's act as a value, and why it may not be done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from workbench.languages import phrase
from workbench.notebook import PlainError

Value = int | bool | str | None
"""Of a parameter or argument."""


refusal = partial(phrase, "refusals")
"""Why something that a learner asks for cannot be, and what could."""


class ActionError(PlainError):
    """A learner's act is not legal now; nothing has changed. The text says what would be legal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """A learner's act, as a value: part of what a run is a function of.

    Attributes:
        after_seq: the act happens when the clock event that made this row is complete; -1 is
            before the first row.
    """

    after_seq: int
    name: str
    arguments: Mapping[str, Value] = field(default_factory=dict)

    def __str__(self) -> str:
        listed = ", ".join(
            f"{name}={value}" for name, value in self.arguments.items() if value is not None
        )
        return f"{self.name}({listed})"
