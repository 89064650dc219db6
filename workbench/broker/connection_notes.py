"""What a connection of the broker tells its observer where no frame does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from workbench.amqp.receiver import ReceiverLink
from workbench.amqp.sender import SenderLink
from workbench.amqp.session import Session

if TYPE_CHECKING:
    from .broker import Broker


class ConnectionNotes:
    """Rows of one connection.

    Attributes:
        name: of the connection.
    """

    name: str
    _broker: Broker

    def available_changed(self, link: SenderLink) -> None:
        """The broker alone knows how much it has for a link: a row of its own tells."""
        self._broker.note_link(
            "available",
            connection=self.name,
            session=link.session.ordinal,
            link=link.name,
            attach_no=link.attach_no,
            ledger=link.ledger(),
        )

    def note_depth(
        self,
        vantage: str,
        kind: str,
        depth: int,
        session: Session | None = None,
        link: SenderLink | None = None,
    ) -> None:
        """A row that tells how much waits in a process."""
        if self._broker.unseen:
            return
        self._broker.note_process(
            vantage,
            "note",
            kind,
            connection=self.name,
            session=None if session is None else session.ordinal,
            link=None if link is None else link.name,
            link_sender=None if link is None else "broker",
            attach_no=None if link is None else link.attach_no,
            ledger={"mailbox": depth},
        )

    def credit_passed_on(self, link: SenderLink, count: int, buffered: int) -> None:
        """A session has granted credit to a queue: a row tells, for no frame does."""
        self._broker.note_session(
            connection=self.name,
            session=link.session.ordinal,
            link=link.name,
            attach_no=link.attach_no,
            buffered=buffered,
            credit=count,
        )

    def credit_held(self, link: ReceiverLink, held: bool) -> None:
        """Credit begins, or ceases, to be withheld from a publisher: a row tells."""
        self._note_publisher(link, "block" if held else "unblock", "unconfirmed")

    def confirmed(self, link: ReceiverLink, count: int) -> None:
        """Messages count no more as unconfirmed, and no frame about the link says so."""
        self._note_publisher(link, "confirm", "confirmed", extra={"count": count})

    def _note_publisher(self, link: ReceiverLink, event: str, kind: str, **columns: Any) -> None:
        if self._broker.unseen:
            return
        self._broker.note_publisher(
            event,
            kind,
            connection=self.name,
            session=link.session.ordinal,
            link=link.name,
            attach_no=link.attach_no,
            ledger=link.ledger(),
            **columns,
        )
