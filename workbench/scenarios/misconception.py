"""What all misconceptions have that can be shown beside the rule: a name, and words for it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from workbench.languages import phrase

say = partial(phrase, "beliefs")


@dataclass(frozen=True, slots=True, kw_only=True)
class Misconception:
    """A way of thinking that a run contradicts.

    Attributes:
        name: as a question names it.
    """

    name: str

    @property
    def says(self) -> str:
        """The belief in a sentence, without its full stop."""
        return say(f"belief.{self.name}.says")

    @property
    def because(self) -> str:
        """Why it is wrong, likewise."""
        return say(f"belief.{self.name}.because")
