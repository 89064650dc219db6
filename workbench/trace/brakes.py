"""What holds a link's sender: one pure function, one order.

A sender is *blocked* while it has something to send and a brake is on. One with nothing to send is
held by nothing else worth naming, so `no-message` comes first. In the middle of a message there is
something to send, and no credit is needed for it: the first frame has spent it [2.6.7].
After that the order goes from the innermost brake (one link's credit) to the outermost (the TCP
connection), with the brakes of the other protocols and of the broker's inside between them. An
alarm works by closing windows: while one is on, the closed window is put down to it first.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial

from workbench.languages import phrase

NO_MESSAGE = "no-message"
UNCONFIRMED = "unconfirmed"
LINK_CREDIT = "link-credit"
PREFETCH = "prefetch"
QPID_WINDOW = "qpid-window"
CREDIT_FLOW = "credit-flow"
ALARM = "alarm"
SESSION_WINDOW = "session-window"
TCP = "tcp"
NONE = "none"

ORDER: tuple[str, ...] = (
    NO_MESSAGE,
    UNCONFIRMED,
    LINK_CREDIT,
    PREFETCH,
    QPID_WINDOW,
    CREDIT_FLOW,
    ALARM,
    SESSION_WINDOW,
    TCP,
    NONE,
)

say = partial(phrase, "steps")


def words(brake: str) -> str:
    """A brake in words, for sentences and legends: "held: " + words."""
    return say(f"brake.{brake}")


def short(brake: str) -> str:
    """A brake in two or three words, for a mark in a picture: "blocked: " + words."""
    return say(f"brake-short.{brake}")


def is_blocked(brake: str | None) -> bool:
    """Whether a sender whose first brake this is has something to send and cannot."""
    return brake not in (None, NO_MESSAGE, NONE)


def brakes(
    *,
    link_credit: int | None = None,
    available: int | None = None,
    remote_incoming_window: int | None = None,
    in_message: bool = False,
    unconfirmed: bool = False,
    prefetch: bool = False,
    qpid_window: bool = False,
    credit_flow: bool = False,
    alarm: bool = False,
    blocked: bool = False,
    tcp: bool = False,
) -> tuple[str, ...]:
    """Everything that holds the sender, in the order above; empty if nothing does.

    What is None is not known (or not in scope) and holds nobody: a brake is never guessed.

    Args:
        link_credit: the sender's own link-credit, in messages [AMQP 1.0, 2.6.7].
        available: messages it could send now if it had credit.
        remote_incoming_window: transfer frames its session may still send [2.5.6].
        in_message: frames of a message that it has begun are still to be sent.
        unconfirmed: the receiver withholds credit because of messages not confirmed yet; it shows
            only where the credit is used up.
        prefetch: an AMQP 0-9-1 consumer's prefetch is full.
        qpid_window: a 0-10 producer's window of incomplete transfers is full.
        credit_flow: an actor that must send on its behalf is blocked.
        alarm: a resource alarm is on; it holds whoever finds the window closed.
        blocked: an alarm has blocked the AMQP 0-9-1 connection, whose windows nobody closes.
        tcp: the connection takes no more octets.
    """
    no_message = available is not None and available <= 0 and not in_message
    no_credit = link_credit is not None and link_credit <= 0 and not in_message
    no_window = remote_incoming_window is not None and remote_incoming_window <= 0
    return _that_hold(  # in the order of `ORDER`
        no_message, unconfirmed and no_credit, no_credit, prefetch, qpid_window, credit_flow,
        blocked or (alarm and no_window), no_window, tcp,
    )  # fmt: skip


@cache
def _that_hold(*holds: bool) -> tuple[str, ...]:
    """Those of `ORDER` that hold, asked of each but `none`."""
    return tuple(brake for brake, on in zip(ORDER[:-1], holds, strict=True) if on)


def is_full(limit: int, unacked: int) -> bool:
    """Whether a consumer has as many messages as its prefetch allows; 0 is no limit."""
    return 0 < limit <= unacked


def link_brakes(ledger: Mapping[str, int | bool], **more: bool) -> tuple[str, ...]:
    """What holds the sender of a link, by its counters, and `more` that `brakes` takes."""
    return brakes(
        link_credit=ledger.get("link_credit"),
        available=ledger.get("available"),
        remote_incoming_window=ledger.get("remote_incoming_window"),
        **more,
    )


def prefetch_brakes(ledger: Mapping[str, int | bool]) -> tuple[str, ...]:
    """What holds deliveries to a consumer of AMQP 0-9-1, by its limit and what it holds."""
    limit, held = ledger.get("prefetch_count", 0), ledger.get("unacknowledged", 0)
    return brakes(prefetch=is_full(limit, held))


def window_brakes(ledger: Mapping[str, int | bool]) -> tuple[str, ...]:
    """What holds a producer of AMQP 0-10, by its window and what it has to send."""
    window, incomplete = ledger.get("transfer_window", 0), ledger.get("incomplete_transfers", 0)
    return brakes(
        link_credit=ledger.get("credit_messages"),
        available=ledger.get("waiting_transfers"),
        qpid_window=0 < window <= incomplete,
    )


def first(found: tuple[str, ...]) -> str:
    """The brake to name where several hold: the first in the order."""
    return found[0] if found else NONE
