"""Traces that no scenario gives: real runs, cut, shifted and spoiled in ways that are drawn.

Each is made of what real endpoints and brokers have sent; a trace of them has lost beginnings, lost
frames, with and without a word of them, and names, one end's rows alone, numbers that wrap, links
attached again.
"""

import random
from dataclasses import replace
from itertools import pairwise

from workbench import serial
from workbench.folds.stalls import PROMPT_US
from workbench.folds.throughput import EMPTY, WINDOW_US
from workbench.trace.schema import CLIENT, OBSERVED, SENT, Row

from .runs import capture_rows, scenario_rows, without

COUNTERS = (
    "next_outgoing_id", "next_incoming_id", "initial_delivery_count", "delivery_count",
    "delivery_id", "first", "last",
)  # fmt: skip

OVERRUN = "drained rmq4.3"
SPLIT = "rmq43_e_large_message_split"
STOPPED = "rmq43_b_consumer_credit"
SHUT = "rmq40_f_memory_alarm"
DRAINED = "rmq43_c_drain"
TWO_LINKS = "rmq43_a_publisher_grants"


def made_rows(seed, runs):
    """So many runs, drawn with this seed, each under a name that says what was done to it.

    The first ones are not drawn: senders that send more than they were granted, messages of several
    frames, handles that are too high, ids that were never sent and echoes without an answer are in
    every trace, whatever there is to draw from.
    """
    draw = random.Random(seed)
    sources = list(scenario_rows().items())
    by_run = {}
    for row in capture_rows():
        by_run.setdefault(row.run, []).append(row)
    sources += list(by_run.items())
    spoiled = scanted(random.Random(seed), scenario_rows()[OVERRUN])
    rows = [replace(row, run=f"{seed} {OVERRUN} scanted") for row in spoiled]
    for name, spoil in (
        (SPLIT, renumbered), (SPLIT, interleaved), (TWO_LINKS, narrowed), (TWO_LINKS, foretold),
        (TWO_LINKS, unanswered), (TWO_LINKS, again), (STOPPED, behind_attaches),
        (STOPPED, paused), (STOPPED, halting), (SHUT, silent), (SHUT, pierced),
        (DRAINED, pierced), (STOPPED, pierced),
    ):  # fmt: skip
        (found,) = (its for run, its in by_run.items() if run.startswith(name))
        # What is missing of these is at places at which each question has something to forget.
        found = spoil(random.Random(0 if spoil is pierced else seed), found)
        rows += [replace(row, run=f"{seed} {name} {spoil.__name__}") for row in found]
    for number in range(runs):
        name, found = draw.choice(sources)
        found = list(found)
        done = draw.sample(CHANGES, draw.randint(1, 3))
        for change in done:
            found = change(draw, found)
        words = "+".join(change.__name__ for change in done)
        rows += [replace(row, run=f"{seed}.{number} {name} {words}") for row in found]
    return rows


def shifted(draw, rows):
    """Every counter by the same, so that some pass 2^32."""
    by = draw.choice([2**32 - draw.randint(1, 12), 2**31 - draw.randint(0, 3)])

    def ahead(value):
        for part in (by // 3, by // 3, by - 2 * (by // 3)):  # one step may be 2^31 - 1 at most
            value = serial.add(value, part)
        return value

    def moved(fields):
        return {
            name: ahead(value) if name in COUNTERS and value is not None else value
            for name, value in fields.items()
        }

    return [row if row.frame is None else replace(row, frame=moved(row.frame)) for row in rows]


def begun_late(draw, rows):
    """Without the first rows."""
    return rows[draw.randint(1, max(1, len(rows) * 2 // 3)) :]


def holed(draw, rows):
    """Without some rows here and there."""
    part = draw.choice([0.02, 0.15])
    return [row for row in rows if not row.is_frame or draw.random() > part]


def pierced(draw, rows):
    """A capture that lacks some frames, and tells where; some counts its importer has found out."""
    part, found = draw.choice([0.02, 0.1, 0.3]), draw.choice([0, 0.5, 1])
    return [
        replace(
            without(row) if draw.random() < part else row,
            ledger=row.ledger if draw.random() < found else None,
        )
        for row in captured(draw, rows)
        if row.is_frame
    ]


def one_sided(draw, rows):
    """Only what one end logged."""
    peer = draw.choice(["client", "broker"])
    return [
        row
        for row in rows
        if not row.is_frame
        or row.event == OBSERVED
        or (row.event == SENT) == (row.from_peer == peer)
    ]


def captured(draw, rows):
    """What was sent, as somebody between the ends sees it."""
    del draw
    return [
        replace(row, event=OBSERVED) if row.event == SENT else row
        for row in rows
        if row.event != "received"
    ]


def unnamed(draw, rows):
    """One link's rows without its name, as after a lost attach."""
    names = sorted({row.link for row in rows if row.link is not None})
    gone = draw.choice(names) if names else None
    return [
        replace(row, link=None, link_sender=None, attach_no=None)
        if gone is not None and row.link == gone and row.kind != "attach"
        else row
        for row in rows
    ]


def behind_attaches(draw, rows):
    """A capture that begins behind all attaches: counts are as its importer finds them out."""
    reckoned_from = draw.choice(rows[: len(rows) // 3 + 1]).seq if rows else 0
    names = sorted({row.link for row in rows if row.link is not None and row.attach_no is not None})
    return [
        row if row.link not in names
        else replace(row, link=f"handle {names.index(row.link)}", attach_no=None,
                     ledger=row.ledger if row.seq >= reckoned_from else None)
        for row in captured(draw, rows)
        if row.kind != "attach"
    ]  # fmt: skip


def again(draw, rows):
    """All of it twice on the same session: every link is attached a second time."""
    del draw
    if not rows:
        return rows
    seq, t_us = rows[-1].seq + 1, rows[-1].t_us
    frames = max((row.frame_id or 0 for row in rows), default=0)
    no_more = [row for row in rows if row.kind not in ("open", "begin", "end", "close")]
    return [row for row in rows if row.kind not in ("end", "close")] + [
        replace(
            row,
            seq=row.seq + seq,
            t_us=row.t_us + t_us,
            frame_id=None if row.frame_id is None else row.frame_id + frames + 1,
            attach_no=None if row.attach_no is None else row.attach_no + 1,
        )
        for row in no_more
    ]


def asked(draw, rows):
    """Flows of receivers that ask, here and there."""
    return [
        replace(row, frame={**row.frame, draw.choice(["drain", "echo"]): True})
        if row.kind == "flow" and row.frame is not None and draw.random() < 0.3
        and row.link_sender == CLIENT != row.from_peer
        else row
        for row in rows
    ]  # fmt: skip


def unanswered(draw, rows):
    """Every grant to a publisher asks for an echo, and none comes."""
    del draw
    return [
        replace(row, frame={**row.frame, "echo": True})
        if row.kind == "flow" and row.link_sender == CLIENT != row.from_peer
        else row
        for row in rows
    ]


def unattached(draw, rows):
    """Without one attach of those there are."""
    attaches = sorted({row.frame_id for row in rows if row.kind == "attach"})
    gone = draw.choice(attaches) if attaches else None
    return [row for row in rows if gone is None or row.frame_id != gone]


def scanted(draw, rows):
    """Some flows grant less than their sender was given to believe."""
    found = []
    for row in rows:
        fields = row.frame
        if row.kind == "flow" and fields.get("link_credit") and draw.random() < 0.5:
            fields = {**fields, "link_credit": fields["link_credit"] // 2}
        found.append(replace(row, frame=fields))
    return found


def narrowed(draw, rows):
    """No end takes a handle above the lowest."""
    del draw
    return [
        replace(row, frame={**row.frame, "handle_max": 0}) if row.kind == "begin" else row
        for row in rows
    ]


def foretold(draw, rows):
    """Every flow speaks of a thousand frames more than were sent."""
    del draw
    return [
        replace(
            row,
            frame={
                **row.frame,
                "next_incoming_id": serial.add(row.frame["next_incoming_id"], 1000),
            },
        )
        if row.kind == "flow" and row.frame.get("next_incoming_id") is not None
        else row
        for row in rows
    ]


def renumbered(draw, rows):
    """Some frames that go on with a message name a delivery-id, right or wrong."""
    return [
        replace(row, frame={**row.frame, "delivery_id": draw.choice([0, 1, 2**32 - 1])})
        if row.kind == "transfer" and "delivery_id" not in row.frame and draw.random() < 0.5
        else row
        for row in rows
    ]


def paused(draw, rows):
    """A clock that jumps ahead by more windows than are listed empty."""
    at, pause_us = draw.choice(rows).seq, 2 * EMPTY * WINDOW_US
    return [replace(row, t_us=row.t_us + pause_us) if row.seq >= at else row for row in rows]


def halting(draw, rows):
    """Here and there more time goes by than a sender lets pass that has waited for credit."""
    part, late_us, found = draw.choice([0.05, 0.3]), 0, []
    for row in rows:
        late_us += draw.randint(0, 3 * PROMPT_US) if draw.random() < part else 0
        found.append(replace(row, t_us=row.t_us + late_us))
    return found


def silent(draw, rows):
    """Of the longest silence, through which a session's window is shut, sixty years are made."""
    _, at = max((later.t_us - row.t_us, later.seq) for row, later in pairwise(rows))
    return [replace(row, t_us=row.t_us + (1 << 51)) if row.seq >= at else row for row in rows]


def interleaved(draw, rows):
    """Every frame of a link twice: once more on a link of the same session, one row later."""
    del draw
    found = []
    for row in rows:
        found.append(row)
        if row.link is not None and row.frame is not None:
            handle = row.frame.get("handle")
            other = {} if handle is None else {"handle": handle + 100}
            found.append(
                replace(
                    row,
                    link=f"{row.link} too",
                    frame={**row.frame, **other},
                    frame_id=None if row.frame_id is None else row.frame_id + 1_000_000,
                )
            )
    return [replace(row, seq=number) for number, row in enumerate(found)]


CHANGES = (
    shifted, begun_late, holed, one_sided, captured, unnamed, again, asked, unattached, scanted,
    narrowed, renumbered, interleaved, behind_attaches, pierced, halting,
)  # fmt: skip


# -- runs for one thing each ----------------------------------------------------------------------

WINDOW = {"incoming_window": 100, "outgoing_window": 100}


class Captured:
    """One run of a capture: a session, and links over which the client sends, with credit."""

    def __init__(self, run, links="", credit=50):
        self.run, self.rows, self.handles = run, [], {}
        for peer in ("client", "broker"):
            self.add(0, peer, "begin", next_outgoing_id=0, **WINDOW)
        for handle, name in enumerate(links):
            self.handles[name] = handle
            self.add(30, "client", "attach", name, initial_delivery_count=0)
            self.add(30, "broker", "attach", name)
            self.grant(30, name, 0, credit)

    def add(self, t_us, peer, kind, name=None, **fields):
        its = {"link": name, "link_sender": "client", "attach_no": 1} if name else {}
        if name:
            fields["handle"] = self.handles.setdefault(name, len(self.handles))
        seq = len(self.rows)
        self.rows.append(
            Row(run=self.run, seq=seq, t_us=t_us, vantage="wire", event="observed",
                protocol="amqp-1.0", connection="c1", session=0, frame_id=seq, from_peer=peer,
                kind=kind, frame=fields, **its)
        )  # fmt: skip

    def gap(self, t_us, peer):
        self.rows.append(
            Row(run=self.run, seq=len(self.rows), t_us=t_us, vantage="wire", event="gap",
                protocol="amqp-1.0", connection="c1", details={"from_peer": peer})
        )  # fmt: skip

    def grant(self, t_us, name, count, credit, **fields):
        its = {"next_incoming_id": count, **WINDOW, **fields}
        self.add(t_us, "broker", "flow", name, delivery_count=count, link_credit=credit, **its)

    def send(self, t_us, name, number):
        self.add(t_us, "client", "transfer", name, delivery_id=number)


def told_apart():
    """Runs in which a row of one link, or of none, tells something of another."""
    opened = Captured("reopened by a link", "a")
    opened.send(1_000, "a", 0)
    shut = {"next_incoming_id": 1, **WINDOW, "incoming_window": 0}
    opened.add(2_000, "broker", "flow", **shut)  # of the session, as an alarm's
    opened.grant(3_002_000, "a", 1, 50)
    opened.send(3_002_500, "a", 1)
    opened.send(9_000_000, "a", 2)

    asked = Captured("asked of two", "ab")
    asked.grant(1_000, "a", 0, 50, echo=True)
    asked.grant(1_001, "b", 0, 50, echo=True)
    answer = {"delivery_count": 0, "available": 0, "next_outgoing_id": 0, "next_incoming_id": 0}
    asked.add(2_000, "client", "flow", "a", **answer, **WINDOW)

    one = Captured("one attach")
    one.add(20, "broker", "attach", "a")
    one.send(1_000, "a", 0)

    behind = Captured("detached behind a gap", "ab", credit=1)
    behind.send(1_000, "b", 0)
    behind.gap(2_000, "broker")
    behind.add(3_000, "client", "detach", "a", closed=True)
    behind.grant(4_000, "b", 1, 0)
    waits = {"delivery_count": 1, "link_credit": 0, "available": 7, "next_outgoing_id": 1}
    behind.add(4_500, "client", "flow", "b", **waits, **WINDOW)
    behind.grant(5_004_500, "b", 1, 10)
    behind.send(5_005_000, "b", 1)
    return [row for run in (opened, asked, one, behind) for row in run.rows]
