"""Two faulty readers of a trace, and the code of each to be read by learners.

Both mistakes were found in public tools that show link credit over a trace: the scraper of
skupper-router (`tools/scraper/amqp_detail.py`) and Adverb. The readers below make the same mistake
and nothing else; they are short so that it can be found by reading.
"""

from __future__ import annotations

import html
import inspect
import textwrap
from collections.abc import Sequence
from typing import Any, Protocol

from workbench.notebook import WrongValueError

from .table import say


class Reader(Protocol):
    """Reads frames one after the other and says how much credit the sender has left.

    Attributes:
        name: what it is called in the tables.
        credit: what it believes after the frames so far; None before it believes anything.
        used_up: it says that the last frame used up the credit.
    """

    name: str
    credit: int | None
    used_up: bool

    def read(self, kind: str, fields: dict[str, Any], from_sender: bool) -> None:
        """Take in one frame.

        Args:
            kind: performative.
            fields: as on the wire, under the names that the specification gives them.
            from_sender: whether the link's sender sent it.
        """
        ...


class CountsFromZero:
    """Looks for the sender's count under a misspelt name, so it always finds none and takes 0.

    It does so at the attach and again when the sender's own flow tells the count, as after a drain.
    Its numbers do not wrap, either.
    """

    name = "counts from zero"

    def __init__(self) -> None:
        self.credit: int | None = None
        self.used_up = False
        self._count = 0
        self._limit = 0
        self._begun = False

    def read(self, kind: str, fields: dict[str, Any], from_sender: bool) -> None:
        """Take in one frame."""
        self.used_up = False
        if kind in ("attach", "flow") and from_sender:
            self._count = fields.get("initial-delivery_count", 0)
        if kind == "attach" and from_sender:
            self._limit = self._count
        elif kind == "flow" and not from_sender:
            self._limit = fields.get("delivery-count", 0) + fields.get("link-credit", 0)
        elif kind == "transfer":
            if not self._begun:
                self._count += 1
                self.used_up = self._count == self._limit
            self._begun = fields.get("more", False)
        self.credit = self._limit - self._count


class BelievesTheFlow:
    """Takes the link-credit of a flow as it stands, and counts only what says `more` aloud.

    A transfer that is not to be continued usually leaves `more` out: false is its default.
    """

    name = "believes the flow"

    def __init__(self) -> None:
        self.credit: int | None = None
        self.used_up = False

    def read(self, kind: str, fields: dict[str, Any], from_sender: bool) -> None:
        """Take in one frame."""
        self.used_up = False
        if kind == "attach" and from_sender:
            self.credit = 0
        elif kind == "flow" and "link-credit" in fields:
            self.credit = fields["link-credit"]
        elif kind == "transfer" and fields.get("more") is False:
            self.credit = (self.credit or 0) - 1
            self.used_up = self.credit == 0


FAULTY: tuple[type[CountsFromZero] | type[BelievesTheFlow], ...] = (CountsFromZero, BelievesTheFlow)


class Sources:
    """The code of faulty readers, to be read.

    Args:
        readers: their classes.
    """

    def __init__(self, readers: Sequence[type[Reader]]) -> None:
        self._texts = [(reader.name, inspect.getsource(reader.read)) for reader in readers]

    def __str__(self) -> str:
        return "\n\n".join(f"“{name}”\n{textwrap.dedent(text)}" for name, text in self._texts)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return "".join(
            f"<p><strong>“{html.escape(name)}”</strong></p>"
            f'<pre style="line-height:1.4">{html.escape(textwrap.dedent(text))}</pre>'
            for name, text in self._texts
        )


def source_of(*names: str) -> Sources:
    """The code with which faulty readers read a frame.

    Raises:
        WrongValueError: if there is no reader of that name; the text lists them.
    """
    known: dict[str, type[Reader]] = {reader.name: reader for reader in FAULTY}
    unknown = [name for name in names if name not in known]
    if unknown:
        listed = ", ".join(known)
        raise WrongValueError(say("audit.no-reader", name=repr(unknown[0]), listed=listed))
    return Sources([known[name] for name in names])
