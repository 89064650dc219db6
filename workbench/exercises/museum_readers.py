"""Readers of a trace for the museum: a right one, and others with one mistake each.

Each mistake was made in public; `museum.toml` says where. What a faulty reader does not get wrong
it takes from the right one, so that the mistake can be found by reading one method.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench import serial
from workbench.serial import link_credit_snd

Fields = Mapping[str, Any]


class RightReader:
    """Follows 2.6.7: the sender's count, and a limit that counts from the receiver's.

    Attributes:
        credit: what the sender has left; None before the attach.
        used_up: the last frame used up the credit.
    """

    name = "right-reader"

    def __init__(self) -> None:
        self.credit: int | None = None
        self.used_up = False
        self.count = 0
        self.begun = False  # a message whose last frame has not come yet

    def read(self, kind: str, fields: Fields, from_sender: bool) -> None:
        """Take in one frame."""
        before, self.used_up = self.credit, False
        if kind == "attach" and from_sender:
            self.attached(fields)
        elif kind == "flow" and from_sender:
            self.told(fields)
        elif kind == "flow" and "link-credit" in fields:
            self.granted(fields)
        elif kind == "transfer" and self.costs_credit(fields):
            self.sent()
            self.used_up = self.credit == 0 and before != 0

    def attached(self, fields: Fields) -> None:
        """The sender says where it begins to count."""
        self.count, self.credit = fields.get("initial-delivery-count", 0), 0

    def granted(self, fields: Fields) -> None:
        """The receiver says how much may come, counted from the count that it knows."""
        counted_from = fields.get("delivery-count", self.count)
        self.credit = link_credit_snd(counted_from, fields["link-credit"], self.count)

    def told(self, fields: Fields) -> None:
        """The sender says where it stands, as after a drain."""
        self.count = fields.get("delivery-count", self.count)
        self.credit = fields.get("link-credit", self.credit)

    def costs_credit(self, fields: Fields) -> bool:
        """Whether a message begins with this frame; `more` is false where it is absent."""
        begins, self.begun = not self.begun, fields.get("more", False)
        return begins

    def sent(self) -> None:
        """A message has left."""
        self.count = serial.add(self.count, 1)
        self.credit = max(0, (self.credit or 0) - 1)


class CountsFromZero(RightReader):
    """Believes that every sender begins to count at 0."""

    name = "tool"

    def attached(self, fields: Fields) -> None:
        """The sender says where it begins to count."""
        self.count, self.credit = fields.get("initial-delivery_count", 0), 0


class TakesTheFlow(RightReader):
    """Takes the link-credit of a flow as it stands."""

    name = "tool"

    def granted(self, fields: Fields) -> None:
        """The receiver says how much may come."""
        self.credit = fields["link-credit"]


class NeedsMore(RightReader):
    """Counts a message only where the frame says `more=false` aloud."""

    name = "tool"

    def costs_credit(self, fields: Fields) -> bool:
        """Whether this frame is a message."""
        return fields.get("more") is False


class ForgetsTheDrain(RightReader):
    """Takes no notice of the flow with which a sender ends a drain."""

    name = "tool"

    def told(self, fields: Fields) -> None:
        """The sender says where it stands, as after a drain."""


class GivesUpAtOnce(RightReader):
    """Takes credit for gone as soon as a drain is asked for."""

    name = "tool"

    def granted(self, fields: Fields) -> None:
        """The receiver says how much may come, or asks for a drain."""
        super().granted(fields)
        if fields.get("drain"):
            self.credit = 0


class CountsDown(RightReader):
    """Lets delivery-count go down with each message, as an article once said."""

    name = "tool"

    def sent(self) -> None:
        """A message has left."""
        self.count -= 1
        self.credit = max(0, (self.credit or 0) - 1)
