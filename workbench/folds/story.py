"""What happened on each link of a trace, in words: for whoever has one capture and one question.

It is put together from the answers of `summary`, `stalls`, `grants`, `windows` and `credit`;
nothing is worked out here that none of them says.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any

from workbench.trace.clock import Clock
from workbench.trace.schema import LOSSES, Row, few
from workbench.trace.words import counted, times

from . import channels
from . import story_words as words
from .credit import credit_rows
from .link_story import LinkStory, Packets, link_stories, stalled
from .story_words import Interval
from .vantage import LinkKey
from .violations import violations
from .wrong import Wrong, dropped, wrong

__all__ = ["BrakeSum", "Interval", "LinkStory", "Packets", "Story", "story", "story_in_parts"]


@dataclass(slots=True, kw_only=True)
class BrakeSum:
    """All stalls by one brake.

    Of `late` ones it is not known for how long something waited; of `untimed` ones the clock does
    not tell how long they were, and they are not in the sums.
    """

    brake: str
    stalls: int = 0
    late: int = 0
    untimed: int = 0
    links: set[LinkKey] = field(default_factory=set)
    lost_us: int = 0
    longest_us: int = 0

    def add(self, link: LinkKey, one: Interval) -> None:
        """One more."""
        self.stalls += 1
        self.late += one.late
        self.untimed += not one.timed
        self.links.add(link)
        self.lost_us += one.lasted_us
        self.longest_us = max(self.longest_us, one.lasted_us)

    def times(self, clock: Clock) -> tuple[str, str]:
        """Together and the longest, in words."""
        if self.untimed == self.stalls:
            return "unknown", "unknown"
        more = f", {self.untimed:,} unknown" if self.untimed else ""
        return f"{clock.length(self.lost_us)}{more}", clock.length(self.longest_us)


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """A run.

    Attributes:
        run: its name.
        lasted_us: from its first row to its end.
        links: the longest wait first, whether it is proved or nothing had ended it; then those with
            late ones only, and those that could not have sent.
        brakes: the one that took most time first.
        wrong: errors that a peer told, and rules that were broken, a line each.
        stopped: the first of them that stopped a client; empty if none did.
        worst: the longest stall with its link; without any, the longest time in which one could
            not have sent; None if there was none.
        lasting: what had lasted longest when the trace ended, or its link was closed, or for how
            long an end said that it takes nothing, with the link, if it is longer than the worst:
            if messages were waiting, this is worse.
        in_turn: the link whose publisher waited longest for answers to one message at a time, if
            that is in all longer than any of these, and than all stalls by any one brake; None if
            there is none.
        untold: without a worst, what no row tells: the credit of some link, because its attach, or
            each grant, is not in the trace; the prefetch of some channel; empty if none is missing.
        unnamed: a frame is of a link whose attach is not in the trace.
        early: a connection had begun before the trace does.
        lacking: what is wrong with its octets, if some are missing or cannot be read.
        one_way: that the capture has one direction alone of some connections, and what to do.
        clock: what its times are worth.
    """

    run: str
    lasted_us: int
    links: tuple[LinkStory, ...]
    brakes: tuple[BrakeSum, ...]
    wrong: tuple[str, ...]
    stopped: str
    worst: tuple[LinkStory, Interval] | None
    lasting: tuple[LinkStory, Interval] | None
    in_turn: LinkStory | None
    untold: str
    unnamed: bool
    early: bool
    lacking: str
    one_way: str
    clock: Clock = field(compare=False)

    @property
    def opened(self) -> tuple[LinkStory, Interval] | None:
        """Of what the headline tells that which lasted longest: its frame is opened."""
        if self.in_turn is not None:
            return self.in_turn, max(self.in_turn.in_turn, key=attrgetter("lasted_us"))
        return self.lasting or self.worst

    @property
    def opened_as(self) -> str:
        """What that is, in a line; empty if there is none."""
        if self.opened is None:
            return ""
        link, one = self.opened
        lasted = f"for {one.lasted(self.clock)}"
        if one.timed and not one.lasted_us:
            lasted = "when the trace ends" if one.lasts else "for no time that the trace tells"
        return f"{link.key.name}, {one.what} {lasted}"

    @property
    def without_links(self) -> str:
        """What is to be said in the place of links; empty if there are some."""
        if self.links:
            return ""
        if not self.unnamed and self.lacking:
            return f"None that can be read: {self.lacking}."
        if not self.unnamed and self.early:
            return (
                "None that the trace tells of: no link was attached in it, and no message was sent."
                " What had been attached, granted or sent before is not in it."
            )
        if not self.unnamed:
            return "None: no link was attached, and no message was sent."
        if self.lacking:
            return f"None that can be named: no attach and no message can be read: {self.lacking}."
        return (
            "None that can be named: neither an attach of one nor a message is in the trace."
            " Capture from before the client connects."
        )

    @property
    def headline(self) -> str:
        """The worst in a sentence; in others what makes it doubtful, and what may be worse.

        Where nothing is known to have been held, what went wrong comes first.
        """
        text = f"{self.one_way} {self._worst}".strip()
        if self.worst is None and self.stopped:
            text = f"{self.stopped.rstrip('.')}. {text}"
        if self.worst is not None and self.worst[1].lacks:
            text += _DOUBT
        untimed = sum(one.untimed for one in self.brakes)
        if self.worst is not None and not self.worst[1].timed:
            text += " The capture's clock went back within it."
        elif untimed:
            text += (
                f" How long {counted(untimed, 'other stall')} lasted is not known: the capture's"
                " clock went back."
            )
        if self.lasting is not None:
            link, one = self.lasting
            text += f" {words.when(one, self.clock)}, {link.key.name} {words.has(one, self.clock)}."
            text += _DOUBT if one.lacks else ""
        if self.in_turn is not None:
            link = self.in_turn
            text += (
                f" The client sent one message at a time on {link.key.name}: it waited for answers"
                f" {times(len(link.in_turn))}, {self.clock.length(link.in_turn_us)} in all."
            )
        return text

    @property
    def _worst(self) -> str:
        if self.worst is None or (self.worst[1].timed and not self.worst[1].lasted_us):
            if self.untold:
                return f"No stall can be proved: the trace never tells the {self.untold}."
            if self.lacking:
                return f"No stall can be proved: {self.lacking}."
            if self.links and all(link.key.link is None for link in self.links):
                return "Nobody is known to have been held by a prefetch, a window or an alarm."
            if not self.links and self.early:
                return "No stall can be proved: no message passed, and what came before is unknown."
            if not self.links:
                return "No link was attached, and no message was sent."
            if self.worst is not None:
                return "No sender was without credit for any time that the trace tells."
            return "No sender was ever without credit or behind a closed window."
        link, worst = self.worst
        since = self.clock.moment(worst.start_us)
        where = f"{worst.lasted(self.clock)} on {link.key.name}, from {since} on"
        if worst.stall and worst.late:
            return (
                "No stall can be proved. The longest time in which a message may have come and"
                f" waited: {where}; blocked by {worst.what}."
            )
        if worst.stall and not worst.timed:
            where = f"{link.key.name}, from {since} on"
            return f"A stall of unknown length on {where}; blocked by {worst.what}."
        if worst.stall:
            return f"The longest stall: {where}; blocked by {worst.what}."
        return (
            "No stall can be proved. The longest time in which a sender could not have sent:"
            f" {where}; {worst.what}."
        )


_DOUBT = " Octets are missing within it: it may have ended sooner."
_NOTHING_MORE = Packets()
NAMED = 3
"""Of more connections that lack something, so many are named."""


def _one_way(unheard: Mapping[str, str]) -> str:
    """That the capture has one direction alone of some connections; empty if it has both of all."""
    if not unheard:
        return ""
    peers, names = sorted(set(unheard.values())), few(list(unheard), NAMED)
    return (
        f"Nothing that the {' or the '.join(peers)} said on {names} is in the capture: capture both"
        " directions."
    )


def _lacking(losses: set[str]) -> str:
    """What is wrong with a trace's octets, by the events that tell of it; empty if nothing is."""
    if not losses:
        return ""
    if "gap" in losses:
        return "octets are missing in the trace"
    return "some octets of the trace cannot be read"


def story(rows: Sequence[Row], packets: Packets = _NOTHING_MORE) -> Story:
    """What happened on each link.

    Args:
        rows: a whole run in order.
        packets: what is known beside them.
    """
    clock = Clock()
    for row in rows:
        clock.see(row)
    return story_in_parts([rows], packets, rows[-1].t_us if rows else 0, clock)


def story_in_parts(
    parts: Iterable[Sequence[Row]], packets: Packets, last_us: int, clock: Clock
) -> Story:
    """The same of a run that is too large for one piece.

    Args:
        parts: each with all rows of some connections, in order, and those of no connection.
        packets: what is known beside them.
        last_us: the time of its last row.
        clock: that has seen all of its rows.
    """
    end_us = max(last_us, packets.until_us)
    links: list[LinkStory] = []
    problems: list[Wrong] = []
    run, begin_us, untold, unnamed, early = "", end_us, "", False, False
    losses: set[str] = set()
    for rows in parts:
        known = replace(packets, still_open=packets.still_open | _still_open(rows))
        held, broken = stalled(rows, known.still_open, end_us, clock), violations(rows)
        links += link_stories(rows, held, broken, known, end_us, clock)
        problems += [*wrong(rows, broken), *dropped(rows, packets.ended)]
        if not untold and not any(link.intervals for link in links):
            untold = _untold(rows)
        unnamed = unnamed or (not links and any(map(_is_unnamed, rows)))
        begun = {row.connection for row in rows if row.kind == "protocol-header"}
        early = early or any(row.is_frame and row.connection not in begun for row in rows)
        losses.update(row.event for row in rows if row.event in LOSSES)
        if rows:
            run, begin_us = rows[0].run, min(begin_us, rows[0].t_us)
    links.sort(key=lambda link: tuple(map(str, link.key)))
    every = [(link, one) for link in links for one in link.intervals]
    brakes: dict[str, BrakeSum] = {}
    for link, one in every:
        if one.stall:
            brakes.setdefault(one.what, BrakeSum(brake=one.what)).add(link.key, one)
    worst = max(every, key=lambda its: _heavy(its[1]), default=None)
    # Of what is known to wait it need not be said that it may; nor of what its connection holds.
    waits = {link.key for link in links if link.still_waits}
    holding = {key.way for key in waits if key.session is None}
    lasting = max(
        (
            its
            for its in every
            if words.may_be_worse(its[1]) and not (its[0].key in waits or its[0].key.way in holding)
        ),
        key=lambda its: its[1].lasted_us,
        default=None,
    )
    if worst is None or lasting is None or lasting[1].lasted_us <= worst[1].lasted_us:
        lasting = None
    alone = max(links, key=attrgetter("in_turn_us"), default=None)
    others_us = [one.lost_us for one in brakes.values()]
    others_us += [its[1].lasted_us for its in (worst, lasting) if its]
    if alone is not None and alone.in_turn_us <= max(others_us, default=0):
        alone = None
    return Story(
        run=run,
        lasted_us=end_us - begin_us,
        links=tuple(sorted(links, key=_weight, reverse=True)),
        brakes=tuple(sorted(brakes.values(), key=lambda one: -one.lost_us)),
        wrong=tuple(one.text for one in sorted(problems)),
        stopped=next((one.text for one in sorted(problems) if one.stops), ""),
        worst=worst,
        lasting=lasting,
        in_turn=alone,
        untold="" if worst or packets.unheard else untold,
        unnamed=unnamed,
        early=early,
        lacking=_lacking(losses),
        one_way=_one_way(packets.unheard),
        clock=clock,
    )


def _still_open(rows: Sequence[Row]) -> set[str]:
    """Connections of which the rows tell that they were made, and not that they were lost.

    A capture's rows tell neither.
    """
    found: set[str] = set()
    for row in rows:
        if row.event == "connect" and row.connection is not None:
            found.add(row.connection)
        elif row.event == "disconnect":
            found.discard(str(row.connection))
    return found


def _untold(rows: Sequence[Row]) -> str:
    """What no row tells of some link, or channel; empty if there is none such."""
    told: dict[tuple[Any, ...], bool] = {}
    for row in credit_rows(rows):
        told[row[:6]] = told.get(row[:6], False) or row.known
    if not all(told.values()):
        return "credit of some link"
    return "" if all(channels.limits(rows).values()) else "prefetch of some channel"


def _is_unnamed(row: Row) -> bool:
    """Its frame has a handle, and nobody knows whose."""
    return row.link is None and row.fields.get("handle") is not None


def _heavy(one: Interval) -> tuple[bool, bool, bool, int]:
    return one.stall, one.stall and not one.late, one.timed, one.lasted_us


def _weight(link: LinkStory) -> tuple[bool, bool, int]:
    """The longest wait before shorter ones, whether it is proved or nothing had ended it.

    Then the late ones, and those of which nobody knows that there were any.
    """
    return max(
        ((one.stall or words.may_be_worse(one), not one.late, one.lasted_us)
         for one in link.intervals if one.lasted_us or not one.timed),
        default=(False, bool(link.in_turn), link.in_turn_us - 1),
    )  # fmt: skip
