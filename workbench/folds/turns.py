"""Publishers that wait for the answer to each message before they send the next.

No brake of a protocol holds them: they hold themselves.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter

from workbench.trace.schema import AMQP_0_9_1, AMQP_1_0, CLIENT, Row

from . import channels
from .channels import Begun
from .intervals import Span, took
from .stalls import PROMPT_US
from .vantage import LinkKey, ends, link_key

__all__ = ["LEAST", "in_turn"]

LEAST = 10
"""So many messages in a row that wait for each other are no chance."""


def in_turn(
    rows: Sequence[Row], answered: Mapping[str, Begun]
) -> Iterator[tuple[str, LinkKey, list[Span]]]:
    """Who had one message in flight at a time, by which measure of `latency`, and each wait.

    That is so where each message but the last was answered before anything of the next was sent.
    That the next had waited for the answer is taken as proved where it followed at once, so
    `LEAST` times and after half of the messages or more, and what passed between answer and next
    message is in all no longer than the waits: else it may be that there was nothing to send.

    Args:
        rows: a whole trace in order.
        answered: of these rows, as `latency` has it.
    """
    sent = _sent(rows)
    for measure, its in answered.items():
        for key, (spans, unanswered) in its.items():
            waits = _waits(sorted(spans, key=lambda span: span[0].seq), sent.get(key, ()))
            # One more may be without its answer: the last, when the trace ends.
            last = max((span[0].seq for span in spans), default=0)
            if (
                all(seq > last for seq in unanswered)
                and len(waits) >= LEAST
                and 2 * len(waits) >= len(spans)
            ):
                behind = sum(gap_us for _, gap_us in waits)
                if behind <= sum(took(span) for span, _ in waits):
                    yield measure, key, [span for span, _ in waits]


def _waits(spans: Sequence[Span], sent: Sequence[Row]) -> list[tuple[Span, int]]:
    """Each wait that the next message followed at once, and how soon; none if one did not wait."""
    found = []
    for span in spans:
        message, answer = span
        at = bisect_right(sent, message.seq, key=attrgetter("seq"))
        if at == len(sent):
            break
        if sent[at].seq < answer.seq:
            return []
        if sent[at].t_us - answer.t_us <= PROMPT_US:
            found.append((span, sent[at].t_us - answer.t_us))
    return found


def _sent(rows: Sequence[Row]) -> dict[LinkKey, list[Row]]:
    """What clients send of messages, by link; of a message in 0-9-1 the method."""
    found: dict[LinkKey, list[Row]] = {}
    for end in ends(rows, AMQP_0_9_1, AMQP_1_0):
        for row in end.rows if end.peer == CLIENT else ():
            if row.from_peer != CLIENT:
                continue
            if row.kind == "basic.publish":
                found.setdefault(channels.channel_key(row, CLIENT), []).append(row)
            elif row.kind == "transfer" and (key := link_key(row)) is not None:
                found.setdefault(key, []).append(row)
    return found
