"""Lesson 08: what a run says about each of its questions, its tables and its checks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from workbench import presets
from workbench.broker.queue_process import MESSAGE_OCTETS
from workbench.exercises import measure
from workbench.exercises.checks import is_whole
from workbench.exercises.measure import MICROSECONDS
from workbench.exercises.predict import questions
from workbench.exercises.table import Table, Tabled, Tables, table_of, tables
from workbench.scenarios import brakes_history, multicast, overload
from workbench.scenarios.beside import Measured, counted, decided
from workbench.scenarios.brakes_history import DIES, first_alarm, outcome
from workbench.scenarios.chain import QUEUES
from workbench.scenarios.emergency_brake import HEEDLESS, SILENT, memory_of
from workbench.scenarios.memory import BOTH, GROWING, LATER, OTHER, PUBLISHER
from workbench.scenarios.mirrors import QUEUE
from workbench.scenarios.overload import CUT_OFF, DISCARD, OPERATOR, THROTTLE
from workbench.scenarios.run import Run, run
from workbench.scenarios.streaming import stream
from workbench.scenarios.world import World
from workbench.trace.brakes import NONE
from workbench.trace.given import takes
from workbench.trace.schema import BROKER, RECEIVED, Row

__all__ = [
    "alarm_in",
    "answers_table",
    "article_tables",
    "asked_to_stop",
    "check",
    "filled",
    "history_table",
    "predict",
    "questions",
    "tangled",
]

from .declare import FORMS, Case, Declared, Facts, Found, case, facts, reached

PRESET = "rmq4.3"  # whose broker the first half is about
ASKS = "rmq1.5"  # who asks clients to stop, and sees to nothing
PAGES = "rmq3.5.5"  # who pages messages out, and has mirrors
RUNNING, BLOCKING, BLOCKED = "running", "blocking", "blocked"

lesson = Declared("08")
predict, check, say = lesson.predict, lesson.check, lesson.say


# -- what is read off a run


@takes
def filled(played: Run, publish: int) -> Run:
    """The branch in which one client publishes more than the memory holds."""
    return played.then("publish", connection=PUBLISHER, count=publish)


def _alarmed(played: Run, publish: int) -> Run:
    """That branch, for a question about what holds while the alarm is on."""
    branch = filled(played, publish)
    assert _alarms(branch.rows)[-1].event == "alarm-set"
    assert state(branch, PUBLISHER) == BLOCKED  # as from RabbitMQ 3.2 on
    return branch


def ready(played: Run, queue: str = GROWING) -> int:
    """Messages in a queue, when all has come to rest."""
    return int(played.world.broker.queues[queue].queue.ready)


def state(played: Run, connection: str) -> str:
    """A connection as an operator sees it, when all has come to rest."""
    return str(played.world.broker.connections[connection].overview()["state"])


def _alarms(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row.event in ("alarm-set", "alarm-clear")]


# -- what is asked


def _memory(form: int, **more: Any) -> dict[str, Any]:
    given = {
        "limit_octets": 30_000 + 1_200 * (form % FORMS),
        "message_bytes": 300 + 10 * form,
        "ready": 10 + form,
        "prefetch": 3 + form % 4,
        "processing_us": 5_000,
        **more,
    }
    return {"run": run("memory", PRESET, given), "publish": 140 + form}


@lesson.asks
def fills(run: Run, publish: int) -> Found:
    """How many messages are in the queue when the alarm comes?"""
    limit, size = run.world.number("limit_octets"), run.world.number("message_bytes")
    held = run.world.broker.held_octets
    by_all, by_payload = (limit - held) // (size + MESSAGE_OCTETS), limit // size
    yield {
        "limit": limit, "size": size, "each": size + MESSAGE_OCTETS, "held": held,
        "by_all": by_all, "by_payload": by_payload,
    }  # fmt: skip
    branch = _alarmed(run, publish)
    there = ready(branch)
    assert there < publish
    assert by_all > 0
    assert abs(by_all - there) < abs(by_payload - there)
    return facts(
        "all",
        there=there,
        octets=branch.world.broker.held_octets,
        wrong={"payload is all that counts": "payload", "an alarm is a warning": "everything"},
        seen=(_alarms(branch.rows) or branch.rows)[-1],
        beside=decided(branch, say("come")),
    )


fills.again(_memory)


@lesson.asks
def who_is_told(run: Run, publish: int) -> Facts:
    """How many clients get connection.blocked when the alarm comes?"""
    branch = _alarmed(run, publish)
    rows = branch.rows
    frames = measure.frames(rows, "connection.blocked", event=RECEIVED, from_peer=BROKER)
    return facts(
        len(frames),
        told=", ".join(str(row.connection) for row in frames) or say("nobody"),
        states=", ".join(f"{name} {state(branch, name)}" for name in branch.world.wires),
        wrong={"every connection is told": len(branch.world.wires), "nobody is told": 0},
        seen=frames[-1] if frames else None,
        beside=counted(branch, say("told"), frames),
    )


@lesson.asks
def goes_on(run: Run, publish: int) -> Found:
    """How many messages does a client get that has not published since the alarm?"""
    there, prefetch = ready(run, OTHER), run.world.number("prefetch")
    yield {"there": there, "prefetch": prefetch}
    branch = _alarmed(run, publish).then("consume", connection=BOTH)
    return facts(
        len(measure.deliveries(branch.rows, connection=BOTH)),
        wrong={"an alarm stops every connection": 0, "nobody reads its acknowledgements": prefetch},
        beside=counted(branch, say("got"), measure.deliveries(branch.rows, connection=BOTH)),
    )


goes_on.again(_memory)


@lesson.asks
def one_publish(run: Run, publish: int) -> Found:
    """And if it publishes one message before it begins to consume?"""
    there, prefetch = ready(run, OTHER), run.world.number("prefetch")
    yield {"there": there, "prefetch": prefetch}
    held = _alarmed(run, publish).then("publish", connection=BOTH)
    branch = held.then("consume", connection=BOTH)
    return facts(
        len(measure.deliveries(branch.rows, connection=BOTH)),
        state=state(branch, BOTH),
        wrong={"consuming is not publishing": there, "deliveries stop later": prefetch},
        beside=counted(branch, say("got"), measure.deliveries(branch.rows, connection=BOTH)),
    )


one_publish.again(_memory)


@lesson.asks
def newcomer(run: Run, publish: int) -> Facts:
    """What becomes of a client that connects while the alarm is on?"""
    joined = _alarmed(run, publish).then("connect")
    branch = joined.then("publish", connection=LATER, count=3)
    opened = bool(joined.world.peers[LATER].amqp.opened)
    first, then = state(joined, LATER), state(branch, LATER)
    return facts(
        "refused" if not opened else "at-once" if first == BLOCKED else "publish",
        first=first,
        then=then,
        wrong={"no connection can be opened": "refused", "it is blocked as it opens": "at-once"},
        beside=decided(branch, say("c4")),
    )


# -- a brake that asks


def asked_to_stop(preset: str = ASKS, **parameters: Any) -> Run:
    """A run in which a broker's memory runs short, with what differs from the scenario."""
    return run("emergency_brake", preset, parameters)


@takes
@reached()
def alarm_in(played: Run) -> int:
    """`seq` of the row at which the first alarm is set."""
    return first_alarm(played.rows)[0].seq


@lesson.asks
def heedless(run: Run) -> Found:
    """What becomes of a client that goes on publishing?"""
    client = run.world.text("client")
    assert client in (HEEDLESS, SILENT)
    yield {
        "broker": run.world.preset.title,
        "conduct": say("heedless" if client == HEEDLESS else "silent"),
    }
    told = outcome(run)
    assert told != NONE
    crash = next((row for row in run.rows if row.event == "crash"), None)
    fate = "dies" if told == DIES else "held" if told.startswith("held") else "closed"
    return facts(
        fate,
        case=fate,
        told=told,
        taken=sum(row.event == "enqueue" for row in first_alarm(run.rows)),
        step=0 if crash is None else measure.step(crash),
        wrong={
            "who is asked stops": "heeds",
            "a broker enforces what it asks for": "closed",
            "every broker can stop reading": "held",
        },
        seen=crash,
        beside=decided(run, say("client"), crash),
    )


@heedless.again
def _heedless(form: int) -> dict[str, Any]:
    preset = brakes_history.RELEASES[form % len(brakes_history.RELEASES)]
    return {"run": asked_to_stop(preset, client=(HEEDLESS, SILENT)[form % 2], messages=50 + form)}


@lesson.asks
def all_clear(run: Run) -> Found:
    """How long is the alarm on?"""
    alarmed = first_alarm(run.rows)
    looked = next(row for row in alarmed if row.event == "note" and row.kind == "memory")
    settled = [row for row in run.rows if row.event == "settle" and row.seq > alarmed[0].seq]
    after_us = [row.t_us - alarmed[0].t_us for row in settled]
    over = looked.extra["compared"] - looked.extra["limit"]
    each = run.world.number("message_bytes") + MESSAGE_OCTETS
    collected_us, reclaimed_us = (
        run.world.number(name) for name in ("collected_us", "reclaimed_us")
    )
    yield {
        "over": over,
        "each": each,
        "next_s": after_us[0] // MICROSECONDS,
        "every_s": (after_us[1] - after_us[0]) / MICROSECONDS,
        "collected_s": collected_us / MICROSECONDS,
        "reclaimed_s": reclaimed_us / MICROSECONDS,
    }
    enough = after_us[(over - 1) // each]
    alarm_s = _alarm_s(run)
    back_s = (enough + collected_us + reclaimed_us) / MICROSECONDS
    assert alarm_s - 1 < back_s <= alarm_s  # the brake of 1.5.0; others ask and look otherwise
    return facts(
        alarm_s,
        back_s=back_s,
        missed_s=alarm_s - 1,
        wrong={
            "what is consumed is free": _alarm_s(_with(run, collected_us=0, reclaimed_us=0)),
            "what is collected is free": _alarm_s(_with(run, reclaimed_us=0)),
        },
        beside=decided(run, say("cleared"), _alarms(run.rows)[1]),
    )


def _with(played: Run, **changes: Any) -> Run:
    """The same run with other parameters, and without acts."""
    return run(played.scenario, played.preset, {**played.parameters, **changes})


def _alarm_s(played: Run) -> int:
    """How long the first alarm is on, in whole seconds: somebody looks once a second."""
    (begin, _), (end, _), *_ = memory_of(played.world).log
    return (end - begin) // MICROSECONDS


@cache
def _answered(messages: int) -> tuple[overload.Outcome, ...]:
    return overload.outcomes(messages=messages)


@lesson.asks
def answers(messages: int) -> Facts:
    """With which answer to an overload is nothing lost, and nobody stopped?"""
    found = {one.option: one for one in _answered(messages)}
    (free,) = (
        one for one in found.values() if not (one.lost or one.kept or one.stood_us or one.gone)
    )
    return facts(
        free.option,
        latency_s=free.latency_us / MICROSECONDS,
        stopped_s=found[THROTTLE].latency_us / MICROSECONDS,
        wrong={
            "who is asked loses nothing": THROTTLE,
            "somebody will come": OPERATOR,
            "who is cut off sends later": CUT_OFF,
            "the oldest are worth the least": DISCARD,
        },
        beside={
            name: _price(name, found[option])
            for name, option in (
                ("who is asked loses nothing", THROTTLE),
                ("somebody will come", OPERATOR),
                ("who is cut off sends later", CUT_OFF),
                ("the oldest are worth the least", DISCARD),
            )
        },
    )


def _price(name: str, one: overload.Outcome) -> Measured:
    """What an answer costs, beside the belief that it costs nothing; each price in its own unit."""
    prices = {
        say("lost"): one.lost,
        say("kept"): one.kept,
        say("stood"): one.stood_us / MICROSECONDS,
    }
    unit, price = next(item for item in prices.items() if item[1])
    return Measured(unit=unit, heights={one.option: price}, yours={name: (one.option, 0)})


# -- from memory to disk


def _paged(played: Run) -> list[Row]:
    """The queue's passes: each pages out as much as there is credit for."""
    return [row for row in played.rows if row.kind == "paged"]


def _out(row: Row) -> int:
    """How much one pass has paged out, ready or handed out."""
    return int(row.extra["messages"]) + int(row.extra["acks"])


@lesson.asks
def first_go(run: Run) -> Found:
    """How many messages leave the RAM before the message store grants anything?"""
    messages, held = run.world.number("messages"), run.world.number("held")
    credit, more = run.world.preset.store_credit, run.world.preset.store_regrant_after
    kind = "held" if held else "ready"
    yield {
        "kind": kind, "messages": messages, "ready": messages - held, "held": held,
        "target": run.world.number("target"), "credit": credit,
    }  # fmt: skip
    first, *rest = _paged(run)
    quota = int(first.extra["quota"])
    assert run.world.number("message_bytes") >= run.world.preset.index_embeds_below
    assert _out(first) == quota > credit if held else credit <= _out(first) < quota
    assert held or not any(row.extra["positions"] for row in (first, *rest))
    return facts(
        _out(first),
        case=kind,
        quota=quota,
        more=more,
        goes=len(rest),
        wrong={
            "the quota goes at once": quota,
            "credit ends all paging": credit,
            "one grant is one batch": more,
        },
        seen=None if held else first,
        beside=decided(run, say("paged"), first),
    )


def _room(form: int, *, held: bool) -> dict[str, Any]:
    more = 20 + form % FORMS
    given = {
        "messages": 40 * more, "target": 15 * more, "held": 25 * more * held,
        "store_credit": (3 + form % 4) * more, "store_regrant_after": more,
    }  # fmt: skip
    return {"run": run("paging", PAGES, given)}


first_go.again(lambda form: _room(form, held=False), "first-go-ready")
first_go.again(lambda form: _room(form, held=True), "first-go-held")


# -- mirrors


def _unnoticed(played: Run, publish: int) -> Run:
    """The branch in which a mirror is cut off, and messages are published before that is seen."""
    lost = played.then("cut_off")
    cut = next(row for row in lost.rows if row.kind == "cut-off")
    return lost.act(cut.seq, "publish", count=publish)


def _left(rows: Sequence[Row], upto: int | None = None) -> dict[str, int]:
    """What a channel may still send to the queue and to each mirror, as it counts it itself."""
    return {
        str(row.queue): int(row.ledger["hop_credit"])
        for row in rows
        if row.vantage == CHANNEL and row.ledger and "hop_credit" in row.ledger
        if upto is None or row.seq <= upto
    }


CHANNEL = "channel:c1/1"


def _stops(rows: Sequence[Row]) -> list[Row]:
    """Where the channel is blocked, and where it goes on."""
    return [row for row in rows if row.vantage == CHANNEL and row.event in ("block", "unblock")]


@lesson.asks
def lost_mirror(run: Run, publish: int) -> Found:
    """How many messages come in before a lost mirror is missed?"""
    credit = run.world.preset.process_credit
    seen_s = run.world.number("mirror_death_us") / MICROSECONDS
    yield {"credit": credit, "seen_s": seen_s}
    branch = _unnoticed(run, publish)
    down = next(row for row in branch.rows if row.kind == "down")
    spent = [row for row in branch.rows if row.kind == "credit-spent" and row.vantage == CHANNEL]
    blocked = _stops(branch.rows)[0]
    came = measure.taken_in(branch.rows[: down.seq], QUEUE)
    assert blocked.seq < down.seq
    assert len(came) < publish
    assert len(run.world.text("nodes").split()) == 2
    return facts(
        len(came),
        early=sum(row.queue == QUEUE and row.seq < blocked.seq for row in spent),
        rest=len(measure.taken_in(branch.rows, QUEUE)) - len(came),
        wrong={
            "who is lost holds nobody": publish,
            "a mirror counts like the queue": 2 * credit,
            "a channel stops at once": credit // 2,
        },
        beside=counted(branch, say("queue"), came, end=down),
    )


@lost_mirror.again
def _cut(form: int) -> dict[str, Any]:
    more = 2 + form % FORMS
    given = {"credit": 4 * more, "more_after": more, "mirror_death_us": 1_000_000 * (5 + form % 7)}
    return {"run": run("mirrors", PAGES, given), "publish": 12 * more + form}


def tangled() -> Run:
    """A run in which two of three mirrors hang, and one of them blocks the channel."""
    small = {"nodes": "n2 n3 n4", "credit": 20, "more_after": 5, "mirror_death_us": 5_000_000}
    begun = run("mirrors", PAGES, small)
    early = begun.then("stall", node="n4").then("publish", count=8)
    return early.then("stall", node="n2").then("publish", count=5)


# -- what is checked


@lesson.checks(scenarios=("memory",), acted=True)
def over(desk: Any) -> Case:
    """Did the alarm end because the memory was there again?

    Args:
        desk: a stage, or a run.
    """
    played = Run.shown_by(desk)
    rows = _alarms(played.rows)
    if not rows:
        return case("never")
    acts = [row for row in played.rows if row.event == "action"]
    if any(row.kind in _BY_HAND for row in acts):
        return case("by-hand")
    cleared = [row for row in rows if row.event == "alarm-clear"]
    if cleared:
        return case("right", step=measure.step(cleared[0]))
    if acts[-1].seq < rows[0].seq:
        return case("alarmed")
    return case("wrong", held=played.world.broker.held_octets)


_BY_HAND = ("alarm", "clear")


@lesson.checks()
def passes(answer: Any, *, messages: int, target: int, message_bytes: int) -> Case:
    """Is that the least credit with which all that is too much goes to disk in one pass?

    Args:
        answer: the message store's first credit; `...` if there is none yet.
        messages: in the queue, all in RAM.
        target: how many may be there.
        message_bytes: of each.
    """
    if not is_whole(answer, most=messages):
        return case("no-credit")
    given = {"messages": messages, "target": target, "message_bytes": message_bytes}
    more = min(answer, presets.get(PAGES).store_regrant_after)  # no grant beyond what was given
    credit = {"store_credit": answer, "store_regrant_after": more}
    played = run("paging", PAGES, {**given, **credit})
    goes = _paged(played)
    if not goes:
        return case("room")
    paged, first = sum(map(_out, goes)), goes[0]
    if len(goes) > 1:
        return case("more", goes=len(goes), first=_out(first), paged=paged)
    if message_bytes < played.world.preset.index_embeds_below:
        return case("embedded", ram=first.extra["ram"]["ram_messages"])
    if answer > paged:
        return case("larger", paged=paged)
    written = [row for row in played.rows if row.event == "append"]
    return case(
        "store",
        paged=paged,
        waiting=max(
            row.ledger["mailbox"] + row.extra.get("count", 1) for row in written if row.ledger
        ),
        busy_s=(written[-1].t_us - first.t_us) / MICROSECONDS,
    )


@lesson.checks(scenarios=("mirrors",), acted=True)
def blocker(desk: Any) -> Case:
    """Did one act let the channel go on: the one upon the mirror that blocks it?

    Args:
        desk: a stage that began with the run `tangled`, or a run.
    """
    played, given = Run.shown_by(desk), tangled().actions
    acts = played.actions[len(given) :]
    if played.actions[: len(given)] != given:
        return case("elsewhere")
    if not acts:
        return case("untouched")
    before = _left(played.rows, acts[0].after_seq)
    hop = min(before, key=lambda one: before[one])
    who = _node(hop)
    done = "; ".join(map(str, acts))
    if _stops(played.rows)[-1].event == "block":
        return case("still", about=done, left=_left(played.rows)[hop], who=who)
    needless = [
        (_node(one), left)
        for one, left in before.items()
        if _node(one) in {act.arguments.get("node") for act in acts} - {who}
    ]
    if needless:
        return case("other", about=done, other=needless[0][0], left=needless[0][1])
    (other,) = {act.arguments["node"] for act in given if act.name == "stall"} - {who}
    if any(act.name == "cut_off" for act in acts):
        seen_s = played.world.number("mirror_death_us") / MICROSECONDS
        return case("dead", about=done, who=who, other=other, seen_s=seen_s)
    return case("woken", about=done, who=who, other=other, left=before[hop])


def _node(hop: str) -> str:
    """Where a mirror is; the queue itself is nowhere else."""
    return hop.rpartition("@")[2]


@lesson.checks()
def burst_credit(answer: Any, *, publish: int, service_us: int) -> Case:
    """Is that the least credit between processes with which a burst is read without a stop?

    Args:
        answer: the first number of `credit_flow_default_credit`; `...` if there is none yet.
        publish: messages of the burst.
        service_us: what the queue needs for each.
    """
    step, usual = _default_credit()
    if not is_whole(answer, most=publish) or answer % step:
        return case("no-credit", step=step)
    more = _more(answer)
    burst = _burst(answer, service_us).then("publish", count=publish)
    stops = _reader_stops(burst)
    if stops:
        read = measure.frames(burst.rows, "basic.publish", event=RECEIVED, upto=stops[0].seq)
        held_ms = (stops[-1].t_us - stops[0].t_us) / 1000
        return case("stops", more=more, read=len(read), held_ms=held_ms)
    stuck = _stuck(answer)
    smaller = answer - step
    if smaller and not _reader_stops(_burst(smaller, service_us).then("publish", count=publish)):
        return case("larger", more=more, stuck=stuck)
    return case(
        "right",
        more=more,
        most=_most_in_mailboxes(burst.rows),
        stuck=stuck,
        credit=usual,
        usual=_stuck(usual),
    )


def _default_credit() -> tuple[int, int]:
    """Both numbers of `credit_flow_default_credit` in that release, the second one first."""
    numbers = presets.get(PAGES)
    return numbers.process_regrant_after, numbers.process_credit


def _more(credit: int) -> int:
    """The second number for a first one, in the proportion that the release has."""
    step, usual = _default_credit()
    return credit * step // usual


def _burst(credit: int, service_us: int = 0) -> Run:
    given = {"credit": credit, "more_after": _more(credit), "service_us": service_us}
    return run("chain", PAGES, given)


def _stuck(credit: int) -> int:
    """Messages that stand in mailboxes when a queue hangs and more is published."""
    hung = _burst(credit).then("stall").then("publish", count=2 * credit + 1)
    return int(hung.world.broker.queues[QUEUES[0]].mailbox)


def _reader_stops(played: Run) -> list[Row]:
    """Where the reader stops, and where it reads on."""
    return [row for row in played.rows if row.vantage == "reader:c1" and row.kind == "credit-flow"]


def _most_in_mailboxes(rows: Sequence[Row]) -> int:
    """Messages that wait for processes at one time, at most."""
    waiting: dict[str, int] = {}
    most = 0
    for row in rows:
        if row.ledger and "mailbox" in row.ledger:
            waiting[row.vantage] = int(row.ledger["mailbox"])
            most = max(most, sum(waiting.values()))
    return most


# -- tables


@takes
def answers_table(messages: int) -> Table:
    """Five answers to one overload, and what each loses; a row each.

    Args:
        messages: that the producer has.
    """
    lines = [
        (
            one.option,
            *map(str, (one.consumed, one.kept, one.discarded, one.died, one.written)),
            f"{one.stood_us / MICROSECONDS:.0f} s",
            f"{one.latency_us / MICROSECONDS:.0f} s",
            say("dies" if one.gone else "lives", octets=one.most_octets),
        )
        for one in _answered(messages)
    ]
    return table_of("overload", lines)


@cache
def _flood() -> World:
    """The article's run, played once without a trace."""
    return stream("multicast").world


class Figures(Tabled):
    """The article's figures beside the run's.

    Args:
        compared: of the run.
    """

    def __init__(self, compared: Sequence[multicast.Compared]) -> None:
        self.compared = compared
        given = ", ".join(one.what for one in compared if one.given)
        off = [
            say("off", what=one.what, here=one.computed, unit=one.unit, article=_span(one))
            for one in compared
            if not one.given and abs(one.residual) > OFF
        ]
        self.summary = say("put-in", given=given, off="; ".join(off) or say("nothing"))

    @property
    def table(self) -> Table:
        """A row for each figure."""
        lines = [
            (
                one.what,
                f"{one.computed:,.0f} {one.unit}",
                f"{_span(one)} {one.unit}",
                _residual(one),
            )
            for one in self.compared
        ]
        return table_of("figures", lines)


def _span(one: multicast.Compared) -> str:
    low, high = one.article[0], one.article[-1]
    return f"{low:,.0f}" if low == high else say("span", low=low, high=high)


def _residual(one: multicast.Compared) -> str:
    if one.given:
        return say("given")
    return f"{one.residual:+.0%}" if one.residual else say("within")


OFF = 0.25
"""From this share on a figure counts as one that does not come out."""


def article_tables() -> Tables:
    """The broker's log in the article's run, and its figures beside the article's."""
    world = _flood()
    lines = [(line,) for line in memory_of(world).log_lines()]
    return tables(table_of("log", lines), Figures(multicast.compared(world)))


def history_table() -> Table:
    """What five releases do when memory runs short; a row a release."""
    lines = [
        (
            presets.get(one.preset).title,
            say(f"counts.{one.counts}", mark=f"{one.watermark:g}"),
            _apart(one.asks) or say("nothing"),
            one.heedless,
            one.silent,
            str(one.taken),
            _apart(one.late),
        )
        for one in brakes_history.history()
    ]
    return table_of("releases", lines)


def _apart(methods: Sequence[str]) -> str:
    """Methods in a cell that may be narrow: their arguments can stand on a line of their own."""
    return ", ".join(methods).replace("(", " (")
