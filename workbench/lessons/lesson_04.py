"""Lesson 04: what a run says about each of its questions, and its checks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workbench.exercises import measure
from workbench.exercises.checks import is_whole
from workbench.exercises.measure import number_in
from workbench.notebook import WrongValueError
from workbench.presets import UINT_MAX, Preset
from workbench.scenarios.beside import counted
from workbench.scenarios.run import Run, run
from workbench.scenarios.windows import EXPRESS, QUEUE, RECEIVERS, TARGET
from workbench.trace.brakes import SESSION_WINDOW
from workbench.trace.given import takes
from workbench.trace.schema import BROKER, CLIENT, OBSERVED, RECEIVED, SENT, Row

from .declare import FORMS, Case, Declared, Facts, Found, case, facts, reached

FIRST = RECEIVERS[0]
PRESET = "rmq4.3"  # whose broker the lesson is about
GENEROUS = 2_147_483_647  # the largest credit that RabbitMQ's sessions survive

lesson = Declared("04")
predict, check, say = lesson.predict, lesson.check, lesson.say


# -- what is read off a run


@takes
def at_start(played: Run, act: str, **arguments: Any) -> Run:
    """The run in which somebody acts as soon as the links are attached."""
    return played.act(played.start_seq, act, **arguments)


def transfers(
    rows: Sequence[Row], peer: str = BROKER, event: str = SENT, *, link: str = "", after: int = -1
) -> list[Row]:
    """Transfer frames of a peer; of one link, if it is named."""
    found = measure.frames(rows, "transfer", event=event, from_peer=peer, after=after)
    return [row for row in found if not link or row.link == link]


def _whole(rows: Sequence[Row]) -> int:
    """How many of these transfer frames end a message."""
    return sum(not (row.frame or {}).get("more") for row in rows)


def _arrived(played: Run) -> int:
    """Messages that have come completely over the first receiving link."""
    return _whole(transfers(played.rows, BROKER, RECEIVED, link=FIRST))


def _of_queue(played: Run, counter: str, name: str = QUEUE) -> int:
    """A counter of a queue by its last row; 0 before it has told."""
    told = [row.ledger or {} for row in played.rows if row.vantage == f"queue:{name}"]
    return next((int(each[counter]) for each in reversed(told) if counter in each), 0)


def _session_flows(rows: Sequence[Row], peer: str = BROKER, *, after: int = -1) -> list[Row]:
    """Flows of a peer that name no link: they tell windows alone."""
    found = measure.frames(rows, "flow", from_peer=peer, after=after)
    return [row for row in found if (row.frame or {}).get("handle") is None]


def _ledger(row: Row, name: str) -> int:
    """A counter of the end that logged a row."""
    return int((row.ledger or {})[name])


def _announced(rows: Sequence[Row], peer: str) -> int:
    """The incoming-window in a peer's begin."""
    return number_in(measure.frames(rows, "begin", from_peer=peer)[0], "incoming_window")


def _most_in(rows: Sequence[Row], vantage: str) -> int:
    """The most messages that a process of the broker said it holds."""
    held = [_ledger(row, "mailbox") for row in rows if row.vantage == vantage and row.ledger]
    return max(held, default=0)


def _ends(rows: Sequence[Row]) -> list[Row]:
    """The broker's end frames."""
    return measure.frames(rows, "end", from_peer=BROKER)


@takes
def halfway(played: Run, number: int, frames: int) -> Run:
    """The run in which the client opens its window when so many frames have come, not all."""
    return played.act(measure.arrival(played, number), "open_window", frames=frames)


@takes
@reached()
def told_at(played: Run, peer: str = CLIENT) -> int:
    """`seq` of the first flow of a peer, after the set-up, that names no link."""
    return _session_flows(played.rows, peer, after=played.start_seq)[0].seq


@takes
def disobeyed(run_: Run, publish: int) -> Run:
    """An alarm, messages that wait for its end, and a client that sends them all the same."""
    alarmed = at_start(run_, "alarm").then("publish", count=publish)
    return alarmed.then("ignore_window")


@takes
def refused_at(played: Run) -> int:
    """`seq` of the row at which the broker ends a session.

    Raises:
        WrongValueError: if it ends none.
    """
    found = _ends(played.rows)
    if not found:
        raise WrongValueError(say("no-end"))
    return found[0].seq


@takes
def rabbit_cut(rows: Sequence[Row]) -> Row:
    """The flow of a capture that sets link-credit to 0 in the middle of a message.

    Raises:
        WrongValueError: if there is none.
    """
    unfinished = False
    for row in rows:
        frame = row.frame or {}
        if row.kind == "transfer" and row.from_peer == BROKER:
            unfinished = bool(frame.get("more"))
        takes = row.kind == "flow" and row.from_peer == CLIENT and frame.get("link_credit") == 0
        if takes and unfinished:
            return row
    raise WrongValueError(say("no-cut"))


# -- what is asked


@lesson.asks
def stops_at(run: Run, link_credit: int) -> Found:
    """How many frames of a large message pass a small window?"""
    size = int(run.parameters["message_bytes"] or 0)
    yield {
        "size": size,
        "limit": run.parameters["max_frame_size"],
        "window": _announced(run.rows, CLIENT),
    }
    granted = at_start(run, "grant", link_credit=link_credit)
    sent = transfers(granted.rows)
    all_of_it = len(transfers(granted.then("open_window", frames=size).rows))
    return facts(
        len(sent),
        case="stops" if len(sent) < all_of_it else "fits",
        all=all_of_it,
        credit=_ledger(sent[-1], "link_credit"),
        wrong={
            "the window counts messages": all_of_it,
            "a message is a frame": 1,
            "all or nothing": 0,
        },
        beside=counted(granted, say("sent"), sent),
        seen=sent[-1],
        shown=granted,
    )


@stops_at.again
def _large(form: int) -> dict[str, Any]:
    window = 2 + form % FORMS
    given = {
        "messages": 1,
        "message_bytes": 480 * (window + 4),
        "max_frame_size": 512,
        "client_window": window,
    }
    return {"run": run("windows", PRESET, given), "link_credit": 1}


@lesson.asks
def more_credit(run: Run, link_credit: int) -> Found:
    """Does credit help a message that has stopped at a window?"""
    stopped = len(transfers(run.rows))
    yield {"stopped": stopped}
    assert transfers(run.rows)[-1].fields.get("more")
    branch = run.then("grant", link_credit=link_credit)
    flow = measure.frames(branch.rows, "flow", from_peer=CLIENT, after=run.last)[0]
    opened = run.then("open_window", frames=stopped)
    begin = (run.parent or run).start_seq  # from there on it can be tried on the picture
    return facts(
        len(transfers(branch.rows, after=run.last)),
        credit=number_in(flow, "link_credit"),
        window=number_in(flow, "incoming_window"),
        wrong={
            "credit opens the window": len(transfers(opened.rows, after=run.last)),
            "credit counts frames": link_credit,
        },
        seen=run.rows[begin],
        shown=branch,
    )


@lesson.asks
def worked_out(run: Run, number: int, frames: int) -> Found:
    """What does a sender make of a window that was told while frames were in flight?"""
    branch = halfway(run, number, frames)
    at = measure.arrival(run, number)
    flow = _session_flows(branch.rows, CLIENT, after=at)[0]
    sent = [row for row in transfers(branch.rows) if row.seq < flow.seq]
    base = number_in(flow, "next_incoming_id")
    yield {"base": base, "sent": len(sent), "sent_to": _ledger(sent[-1], "next_outgoing_id")}
    heard = next(
        row for row in branch.rows if row.frame_id == flow.frame_id and row.event == RECEIVED
    )
    return facts(
        _ledger(heard, "remote_incoming_window"),
        heard=measure.step(heard),
        own=_ledger(heard, "next_outgoing_id"),
        wrong={
            "the window is what the flow says": frames,
            "windows add up": frames + _announced(run.rows, CLIENT),
        },
        seen=heard,
        shown=branch,
    )


@worked_out.again
def _crossing(form: int) -> dict[str, Any]:
    frames = 2 + form % FORMS
    given = {
        "messages": 4 * frames,
        "client_window": 2 * frames,
        "link_credit": 4 * frames,
        "broker_first_id": 10 * frames,
        "latency_us": 100 * frames + 100,  # by then the broker stands at its window
    }
    return {"run": run("windows", PRESET, given), "number": frames, "frames": frames + 1}


@lesson.asks
def reopens_at(run: Run, publish: int) -> Found:
    """How much of its window has RabbitMQ left when it opens it again?"""
    window = _announced(run.rows, BROKER)
    yield {"window": window}
    branch = at_start(run, "publish", count=publish)
    flow = _session_flows(branch.rows, after=run.start_seq)[0]
    before = [
        row.ledger["incoming_window"]
        for row in branch.rows[: flow.seq]
        if row.vantage == BROKER
        and row.session == flow.session
        and row.ledger
        and "incoming_window" in row.ledger
    ]
    came = transfers(branch.rows, CLIENT, RECEIVED)
    left = [_ledger(row, "remote_incoming_window") for row in transfers(branch.rows, CLIENT)]
    return facts(
        int(before[-1]),
        case="goes-on" if all(left) else "waits",
        came=sum(row.seq < flow.seq for row in came),
        opened=measure.step(flow),
        told=number_in(flow, "incoming_window"),
        wrong={"waits until it is used up": 0, "after every frame": window - 1},
        beside=counted(
            branch,
            say("left"),
            [row for row in came if row.seq < flow.seq],
            end=flow,
            full=window,
        ),
    )


@lesson.asks
def held(run: Run) -> Found:
    """How many messages leave the queue for a client that takes only a few?"""
    ready = int(run.parameters["messages"] or 0)
    yield {
        "ready": ready,
        "window": _announced(run.rows, CLIENT),
        "credit": run.parameters["link_credit"],
    }
    sent = _whole(transfers(run.rows))
    assert not _ends(run.rows)
    return facts(
        ready - _of_queue(run, "queue_ready"),
        sent=sent,
        most=_most_in(run.rows, "session:c1/1"),
        batch=run.preset.max_queue_credit,
        wrong={"nothing leaves that cannot be sent": sent, "credit empties the queue": ready},
        beside=counted(
            run,
            say("gone"),
            [row for row in run.rows if (row.event, row.queue) == ("deliver", QUEUE)],
        ),
    )


@held.again
def _greedy(form: int) -> dict[str, Any]:
    given = {"messages": 500, "client_window": 2 + form % FORMS, "link_credit": GENEROUS}
    return {"run": run("windows", PRESET, given)}


@lesson.asks
def real_split(rows: Sequence[Row]) -> Found:
    """Does a real broker go on with a message whose credit is taken away in its middle?"""
    request = rabbit_cut(rows)
    sent = transfers(rows, BROKER, OBSERVED)
    before = [row for row in sent if row.seq < request.seq]
    window = number_in(request, "incoming_window")
    yield {
        "came": len(before),
        "step": measure.step(request),
        "window": window,
        "credit": number_in(request, "link_credit"),
        "octets": sum(row.body_bytes or 0 for row in sent),
        "each": before[-1].body_bytes,
    }
    return facts(
        len(sent) - len(before),
        last=measure.step(sent[-1]),
        wrong={"credit 0 stops a message": 0, "the window is used up": window},
        beside=counted(rows, say("follow"), sent[len(before) :]),
        seen=sent[-1],
    )


@lesson.asks
def obeys(run: Run, publish: int) -> Facts:
    """How many messages does a client send that obeys an alarm?"""
    branch = at_start(run, "alarm").then("publish", count=publish)
    flow = _session_flows(branch.rows, after=run.start_seq)[0]
    credit = next(
        row.ledger["link_credit"]
        for row in reversed(run.rows)
        if row.link_sender == CLIENT and row.ledger and "link_credit" in row.ledger
    )
    return facts(
        len(transfers(branch.rows, CLIENT)),
        window=number_in(flow, "incoming_window"),
        told=measure.step(flow),
        credit=credit,
        wrong={"credit is enough": min(publish, int(credit))},
        shown=branch,
    )


@lesson.asks
def tolerated(run: Run, publish: int) -> Found:
    """How many frames does the broker take from a client that ignores the alarm?"""
    yield {"window": _announced(run.rows, BROKER)}
    branch = disobeyed(run, publish)
    over = next(iter(_ends(branch.rows)), None)
    error = over.extra.get("error") if over else None
    return facts(
        _of_queue(branch, "queue_ready", TARGET),
        case="ended" if over else "all",
        condition=error.get("condition", "") if isinstance(error, dict) else error or "",
        ended=measure.step(over) if over else None,
        sent=sum(over is None or row.seq < over.seq for row in transfers(branch.rows, CLIENT)),
        wrong={"the first frame too many ends it": 0, "nobody counts": publish},
        beside=counted(
            branch,
            say("taken"),
            measure.taken_in(branch.rows, TARGET),
        ),
        seen=over or branch.rows[-1],
    )


@lesson.asks
def consumers(run: Run, link_credit: int) -> Found:
    """Do consumers of the same session go on under an alarm?"""
    ready = int(run.parameters["messages"] or 0)
    yield {"ready": ready}
    branch = at_start(run, "alarm").then("grant", link_credit=link_credit)
    return facts(
        _arrived(branch),
        wrong={"a closed window stops everything": 0, "an alarm empties the queue": ready},
        beside=counted(
            branch,
            say("come"),
            measure.handed_over(branch.rows, event=RECEIVED),
        ),
        seen=run.rows[run.start_seq],
        shown=branch,
    )


@consumers.again
def _both_ways(form: int) -> dict[str, Any]:
    credit = 2 + form % FORMS
    given = {"publisher": True, "messages": 3 * credit}
    return {"run": run("windows", PRESET, given), "link_credit": credit}


@lesson.asks
def express(run: Run) -> Found:
    """Does a second session get through beside one that is full?"""
    ready = int(run.parameters["express"] or 0)
    yield {
        "ready": ready,
        "stuck": int(run.parameters["messages"] or 0) - _arrived(run),
    }
    assert not _ends(run.rows)
    assert not _ledger(transfers(run.rows)[-1], "remote_incoming_window")
    branch = run.then("begin_session", link_credit=max(1, ready))
    came = transfers(branch.rows, BROKER, RECEIVED, link=EXPRESS)
    half = _announced(run.rows, CLIENT) // 2
    return facts(
        len(came),
        number=came[-1].session if came else "?",
        sockets=len(branch.world.wires),
        wrong={
            "the window is the connection's": 0,
            **({"the window is shared out": half} if half < len(came) else {}),
        },
        shown=branch,
    )


@express.again
def _stuck(form: int) -> dict[str, Any]:
    window = 2 + form % FORMS
    given = {"messages": 5 * window, "client_window": window + 3, "link_credit": 5 * window}
    return {"run": run("windows", PRESET, {**given, "express": window})}


# -- what is checked


@lesson.checks(scenarios=("windows",), acted=True)
def under_alarm(desk: Any) -> Case:
    """Has the queue been emptied under an alarm while something published waits?

    Args:
        desk: a stage, or a run.
    """
    played = Run.shown_by(desk)
    alarm = next((row for row in played.rows if row.event == "alarm-set"), None)
    if alarm is None:
        return case("no-alarm")
    if any(row.event == "alarm-clear" for row in played.rows):
        return case("cleared")
    if _ends(played.rows):
        return case("ended")
    left, came = _of_queue(played, "queue_ready"), measure.messages(played.rows, after=alarm.seq)
    if left or not came:
        return case("left", came=came, left=left)
    unsettled = _of_queue(played, "queue_unsettled")
    if unsettled:
        return case("unsettled", unsettled=unsettled)
    later = played.rows[alarm.seq + 1 :]
    if not any(row.event == "action" and row.kind == "publish" for row in later):
        return case("unpublished")
    published = [act.arguments["count"] for act in played.actions if act.name == "publish"]
    waiting = sum(int(count or 0) for count in published) - _whole(transfers(played.rows, CLIENT))
    if not waiting:
        return case("nothing-waits")
    return case("right", came=came, sent=len(transfers(later, CLIENT)), waiting=waiting)


@lesson.checks(scenarios=("windows",), acted=True)
def overtakes(desk: Any) -> Case:
    """Has an express message come while the first session stood still at its window?

    Args:
        desk: a stage, or a run.
    """
    played = Run.shown_by(desk)
    first = transfers(played.rows, link=FIRST)
    full = next((row for row in first if not _ledger(row, "remote_incoming_window")), None)
    if full is None:
        return case("open")
    later = transfers(played.rows, link=EXPRESS, after=full.seq)
    again = transfers(played.rows, link=FIRST, after=full.seq)
    if not later:
        return case("nothing", full=measure.step(full))
    if again and again[0].seq < later[0].seq:
        return case("opened")
    return case("right", full=measure.step(full), later=measure.step(later[0]))


@lesson.checks()
def smallest_window(
    answer: Any, *, latency_us: int, messages: int, preset: Preset | str = PRESET
) -> Case:
    """Is that the smallest window, opened at half, with which the sender never finds it closed?

    Args:
        answer: transfer frames, 1 or more; `...` if there is none yet.
        latency_us: how long a frame is under way in each direction.
        messages: ready in the queue, of one frame each, with credit for all.
        preset: every other number.
    """
    if not is_whole(answer, most=UINT_MAX):
        return case("no-window")

    def closed(window: int) -> int:
        given = {
            "client_window": window,
            "reopens": True,
            "latency_us": latency_us,
            "messages": messages,
            "link_credit": 2 * messages,
        }
        return len(measure.starvations(run("windows", preset, given).rows, SESSION_WINDOW))

    if times := closed(answer):
        return case("closed", times=times)
    if answer == 1:
        return case("one")
    less = answer - 1
    times = closed(less)
    return case("smallest", less=less, times=times) if times else case("larger", less=less)
