"""Conversations written line by line, for tables of tests.

    grant 23; pump; send 20; pump -> credit 3/3
    grant 6; send 1               -> credit 2/6

A line has acts and, behind the arrow, what is seen then: names of a class's methods `do_...` and
`see_...`, with their arguments, or the text that is expected. `+` between acts says that nothing
happens between them, where after `;` something does.
"""

from __future__ import annotations

from ast import literal_eval
from typing import Any


def value_of(text: str) -> Any:
    """A number, a truth value, None, or else the text itself."""
    try:
        return literal_eval(text)
    except (ValueError, SyntaxError):
        return text


class Conversation:
    """What acts and sights are called is told by the methods of its kinds."""

    def play(self, script: str) -> None:
        """Act line by line, and compare what is seen with what is written."""
        for line in script.strip().splitlines():
            acts, _, sights = line.partition("->")
            for together in acts.split(";"):
                for act in filter(None, map(str.strip, together.split("+"))):
                    self.do(act)
                self.go_on()
            for sight in filter(None, sights.split("|")):
                name, _, expected = sight.strip().partition(" ")
                found = self.see(name)
                assert found == (expected or "-"), f"{line.strip()}: {name} is {found}"

    def do(self, act: str) -> None:
        """One act; `name:` before it says whose turn it is from now on."""
        who, colon, rest = act.partition(":")
        if colon:
            self.turn_to(who.strip())
            act = rest
        name, *words = act.split()
        named = dict(word.split("=", 1) for word in words if "=" in word)
        plain = [value_of(word) for word in words if "=" not in word]
        getattr(self, f"do_{name}")(*plain, **{key: value_of(text) for key, text in named.items()})

    def see(self, name: str) -> str:
        """One sight, as it is written in a script; `-` for nothing."""
        found = self.look(name)
        if isinstance(found, dict):
            found = [f"{key}={value}" for key, value in found.items()]
        if isinstance(found, list | tuple):
            return " ".join(map(str, found)) or "-"
        return str(found)

    def look(self, name: str) -> Any:
        """What a sight shows."""
        return getattr(self, f"see_{name}")()

    def turn_to(self, who: str) -> None:
        """Whose turn it is."""
        raise NotImplementedError

    def go_on(self) -> None:
        """Happens after each act between semicolons."""
