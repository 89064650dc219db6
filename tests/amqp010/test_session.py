"""Sessions: commands are counted, completed in ranges, and held back by execution.sync."""

import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.amqp010 import commands as c
from workbench.amqp010 import controls as k
from workbench.amqp010.composite import COMMANDS, CONTROLS, UnknownCommand
from workbench.amqp010.errors import (
    CloseCode,
    DetachCode,
    ErrorCode,
    LocalProtocolError,
    Scope,
)
from workbench.amqp010.events import (
    CommandReceived,
    CommandsCompleted,
    ExceptionReceived,
    ResultReceived,
    SessionDetached,
    Violation,
)
from workbench.amqp010.frame import (
    Frame,
    Headers,
    ProtocolHeader,
    control_frame,
    encode_item,
    frames_of,
)
from workbench.amqp010.ranges import RangeSet, nearest, on_wire
from workbench.amqp010.session import MOST_SUBSCRIPTIONS, MOST_SYNCS
from workbench.amqp010.states import (
    CONNECTION_TABLE,
    SESSION_TABLE,
    SPEAKERS,
    ConnectionState,
    SessionState,
)
from workbench.amqp010.structs import ExchangeQueryResult
from workbench.amqp010.values import SequenceSet

from .pair import Pair

STARTS = [0, 10, 2**31 - 5, 2**32 - 6]


@pytest.fixture(params=STARTS)
def pair(request):
    """A pair whose commands are counted from 0, and from where ids are about to wrap."""
    found = Pair(first=request.param)
    found.server.kept = (c.MessageTransfer,)
    return found


def numbers(pair):
    """The transfers that came, by the receiver's count."""
    return [event.command_id for event in pair.server.of(CommandReceived)]


def test_both_ends_open_and_close():
    """Header, start, start-ok, tune, tune-ok, open, open-ok; close and close-ok."""
    pair = Pair(None)
    assert pair.client.amqp.opened
    assert pair.server.amqp.opened
    frames = [*pair.server.sent, *pair.client.sent]
    assert [one.kind for one in frames if isinstance(one, Frame)] == [
        "connection.start", "connection.tune", "connection.open-ok",
        "connection.start-ok", "connection.tune-ok", "connection.open",
    ]  # fmt: skip
    pair.client.amqp.close()
    pair.pump()
    assert pair.client.amqp.ended
    assert pair.server.amqp.ended


def test_commands_are_completed_when_the_receiver_says_so(pair):
    """Ranges, joined; what the sender has incomplete is what the receiver has not completed."""
    for _ in range(6):
        pair.session.send(c.MessageTransfer("q"), Headers(), b"x")
    pair.pump()
    first = numbers(pair)[0]
    assert len(pair.session.sent_incomplete) == 6
    for number in (first, first + 2, first + 1, first + 4):
        pair.peer.complete(number)
    pair.session.flush()
    pair.pump()
    (told,) = [event for event in pair.client.of(CommandsCompleted) if event.ranges]
    sent = pair.session.sent - 6
    assert told.ranges == ((sent, sent + 2), (sent + 4, sent + 4))
    assert list(pair.session.sent_incomplete) == [(sent + 3, sent + 3), (sent + 5, sent + 5)]


def test_nothing_is_told_unless_it_is_asked_for(pair):
    """A completion waits for sync, flush or execution.sync."""
    pair.session.send(c.MessageTransfer("q"), Headers(), b"x")
    pair.session.send(c.MessageTransfer("q", sync=True), Headers(), b"x")
    pair.pump()
    one, two = numbers(pair)
    pair.peer.complete(one)
    pair.pump()
    assert pair.client.of(CommandsCompleted) == []
    pair.peer.complete(two)
    pair.pump()
    assert not pair.session.sent_incomplete


def test_a_sync_is_held_until_earlier_commands_complete(pair):
    """Not until the later ones do; two syncs may wait."""
    sync = c.ExecutionSync
    for command in (c.MessageTransfer("q"), sync(), c.MessageTransfer("q"), sync()):
        pair.session.send(command, *((Headers(), b"x") if command.CODE == 0x0401 else ()))
    pair.pump()
    one, two = numbers(pair)[0], numbers(pair)[2]
    assert len(pair.peer.pending_syncs) == 2
    pair.peer.complete(two)
    pair.pump()
    assert pair.client.of(CommandsCompleted) == []
    pair.peer.complete(one)
    pair.pump()
    assert not pair.session.sent_incomplete
    assert not pair.peer.pending_syncs


def test_a_sync_with_nothing_before_it_completes_at_once(pair):
    """It is told if it asks for that, or is asked for: it had not to wait."""
    pair.session.send(c.ExecutionSync())
    pair.pump()
    assert not pair.peer.received_incomplete
    assert pair.session.sent_incomplete
    pair.session.send(c.ExecutionSync(sync=True))
    pair.pump()
    assert not pair.session.sent_incomplete


def test_accepts_go_before_the_completion(pair):
    """message.accept for the transfers that wanted it, in one command; a flush brings none."""
    for _ in range(3):
        pair.session.send(c.MessageTransfer("q", accept_mode=0), Headers(), b"x")
    pair.pump()
    for number in numbers(pair):
        pair.peer.complete(number, accept=True)
    pair.session.flush()
    pair.pump()
    assert not pair.server.said(c.MessageAccept)
    pair.session.send(c.ExecutionSync(sync=True))
    pair.pump()
    (accepted,) = pair.server.said(c.MessageAccept)
    first = on_wire(numbers(pair)[0])
    assert accepted.transfers == SequenceSet(((first, on_wire(first + 2)),))
    assert [type(one.content).__name__ for one in pair.server.sent[-2:]] == [
        "MessageAccept", "SessionCompleted",
    ]  # fmt: skip


def test_what_is_known_to_be_known_is_not_told_again(pair):
    """known-completed empties the receiver's memory, also of what was told before."""
    for _ in range(2):
        pair.session.send(c.ExchangeDelete("e", sync=True))
        pair.pump()
    assert not pair.client.said(k.SessionKnownCompleted)
    assert len(pair.peer.completed) == 2
    pair.session.flush()
    pair.pump()
    (told,) = pair.client.said(k.SessionKnownCompleted)
    first = on_wire(pair.session.sent - 2)
    assert told.commands == SequenceSet(((first, on_wire(first + 1)),))
    assert not pair.peer.completed


def test_a_receiver_tells_every_65_536th_command_what_is_complete():
    """Before it executes that one, and asks that it be known."""
    pair = Pair(first=65_534)
    pair.session.send(c.QueuePurge("q"))
    pair.session.send(c.QueuePurge("q"))
    pair.pump()
    (told,) = pair.server.said(k.SessionCompleted)
    assert told == k.SessionCompleted(SequenceSet(((65_534, 65_534),)), timely_reply=True)
    assert list(pair.peer.completed) == [(65_535, 65_535)]


def test_what_is_sent_again_is_read_over(pair):
    """`SessionState::receiverRecord`: a command-point may go back, and not beyond what came."""
    first = pair.session.sent
    for _ in range(3):
        pair.session.send(c.QueuePurge("q"))
    pair.pump()
    pair.client.amqp.send_control(0, k.SessionCommandPoint(on_wire(first + 1), 0))
    for command in (c.QueuePurge("q"), c.QueuePurge("q"), c.QueueDelete("q")):
        pair.client.amqp.send(0, command, None, None)
    pair.pump()
    kinds = [type(event.command) for event in pair.server.of(CommandReceived)]
    assert kinds == [c.QueuePurge] * 3 + [c.QueueDelete]
    assert pair.peer.received == first + 4
    assert not pair.server.of(Violation)


def test_a_result_comes_before_its_completion(pair):
    """execution.result names the command by its id."""
    pair.server.kept = (c.ExchangeQuery,)
    number = pair.session.send(c.ExchangeQuery("e", sync=True))
    pair.pump()
    pair.peer.complete(numbers(pair)[0], result=ExchangeQueryResult(not_found=True))
    pair.pump()
    (found,) = pair.client.of(ResultReceived)
    assert (found.result_of, found.value) == (number, ExchangeQueryResult(not_found=True))
    kinds = [type(event) for event in pair.client.events]
    assert kinds.index(ResultReceived) < kinds.index(CommandsCompleted)


def test_flush_asks_for_all_three():
    """expected, confirmed, completed."""
    pair = Pair()
    pair.session.send(c.QueuePurge("q"))
    pair.client.amqp.send_control(0, k.SessionFlush(expected=True, confirmed=True, completed=True))
    pair.client.amqp.send_control(0, k.SessionRequestTimeout(60))
    pair.pump()
    assert pair.server.said(k.SessionExpected) == [k.SessionExpected(SequenceSet(((1, 1),)), ())]
    assert pair.server.said(k.SessionConfirmed) == [k.SessionConfirmed(SequenceSet(((0, 1),)), ())]
    assert pair.server.said(k.SessionCompleted) == [
        k.SessionCompleted(SequenceSet(((0, 0),)), timely_reply=True)
    ]
    assert pair.server.said(k.SessionTimeout) == [k.SessionTimeout(0)]


@given(
    st.sampled_from(STARTS),
    st.lists(st.sampled_from(["send", "sync", "complete", "flush", "pump"]), max_size=60),
    st.randoms(use_true_random=False),
)
@settings(max_examples=60)
def test_a_command_is_incomplete_until_it_is_known_to_be_executed(first, acts, chooser):
    """Random acts against a book-keeper that keeps every command; splits fall anywhere."""
    pair = Pair(first=first)
    pair.server.kept = (c.MessageTransfer,)
    done, syncs = set(), []
    for act in acts:
        open_ = [n for n in numbers_of_transfers(pair) if n not in done]
        if act == "send":
            pair.session.send(c.MessageTransfer("q"), Headers(), b"x")
        elif act == "sync":
            syncs.append(pair.session.send(c.ExecutionSync()))
        elif act == "complete" and open_:
            done.add(chosen := chooser.choice(open_))
            pair.peer.complete(chosen)
        elif act == "flush":
            pair.session.flush()
        else:
            for end, other in ((pair.client, pair.server), (pair.server, pair.client)):
                octets, end.out = b"".join(end.out), []
                cut = chooser.randrange(len(octets) + 1)
                other.feed(octets[:cut])
                other.feed(octets[cut:])
        for sync in syncs:  # ids are the same at both ends here: every command starts at `first`
            before = [n for n in range(first, sync) if n in pair.peer.received_incomplete]
            assert not before or sync not in pair.peer.completed
        assert {n for n in done if n in pair.peer.received_incomplete} == set()
        told = set(range(first, pair.session.sent)) - set(flat(pair.session.sent_incomplete))
        assert told <= done | set(syncs)
    pair.pump()
    pair.session.flush()
    pair.pump()
    left = {n for n in numbers_of_transfers(pair) if n not in done}
    held = {n for n in syncs if any(one < n for one in left)}
    assert set(flat(pair.session.sent_incomplete)) == left | held


def numbers_of_transfers(pair):
    return [e.command_id for e in pair.server.of(CommandReceived)
            if isinstance(e.command, c.MessageTransfer)]  # fmt: skip


def flat(ranges):
    return [n for first, last in ranges for n in range(first, last + 1)]


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 30), st.integers(0, 5)), max_size=40))
def test_a_range_set_is_a_set(steps):
    """Ranges are disjoint, do not touch, and hold what a plain set holds."""
    ranges, plain = RangeSet(), set()
    for adds, first, more in steps:
        numbers = set(range(first, first + more + 1))
        if adds:
            ranges.add(first, first + more)
            plain |= numbers
        else:
            assert set(flat(ranges.remove(first, first + more))) == plain & numbers
            plain -= numbers
        assert set(flat(ranges)) == plain
        assert len(ranges) == len(plain)
        assert ranges.first == min(plain, default=None)
        assert all(n in ranges for n in plain)
        pairs = list(ranges)
        assert all(last + 1 < after for (_, last), (after, _) in itertools.pairwise(pairs))


@given(st.integers(0, 2**40), st.integers(-(2**31) + 1, 2**31 - 1))
def test_an_id_on_the_wire_is_the_nearest_command(known, distance):
    """However often the ids have wrapped."""
    assert nearest(on_wire(known + distance), known) == known + distance


# -- bad input ----------------------------------------------------------------------------------


def fault(pair):
    """The one fault that the server found."""
    (found,) = pair.server.of(Violation)
    return found.scope, found.code


def control(method):
    """Octets of a control on channel 0."""
    return encode_item(control_frame(0, method))


def command(method, channel=0):
    """Octets of a command."""
    return b"".join(map(encode_item, frames_of(channel, method)))


def content(*parts):
    """Octets of a command with what only a message has."""
    return b"".join(map(encode_item, frames_of(0, *parts)))


POINT = k.SessionCommandPoint(5, 0)
SUB_COMMAND = c.MessageSubscribe("q", "d")
SUB = command(SUB_COMMAND)
BAD = {
    "a gap": (control(k.SessionGap(SequenceSet(((0, 5),)))), ErrorCode.NOT_IMPLEMENTED),
    "a command beyond a gap": (control(POINT), ErrorCode.INVALID_ARGUMENT),
    "part of a command": (control(k.SessionCommandPoint(0, 7)), ErrorCode.NOT_IMPLEMENTED),
    "completion of what was never sent": (
        control(k.SessionCompleted(SequenceSet(((0, 3),)))), ErrorCode.INVALID_ARGUMENT),
    "completion backwards": (
        control(k.SessionCompleted(SequenceSet(((2**32 - 1, 2**32 - 9),)))),
        ErrorCode.INVALID_ARGUMENT),
    "knowledge of what never came": (
        control(k.SessionKnownCompleted(SequenceSet(((7, 7),)))), ErrorCode.INVALID_ARGUMENT),
    "another session's detach": (control(k.SessionDetach(b"t")), ErrorCode.INVALID_ARGUMENT),
    "another session's attached": (control(k.SessionAttached(b"t")), ErrorCode.INVALID_ARGUMENT),
    "confirmation of what was never sent": (
        control(k.SessionConfirmed(SequenceSet(((0, 3),)), ())), ErrorCode.INVALID_ARGUMENT),
    "expectation of what was never sent": (
        control(k.SessionExpected(SequenceSet(((3, 3),)), ())), ErrorCode.INVALID_ARGUMENT),
    "a command with a header": (content(c.ExecutionSync(), Headers()), ErrorCode.INTERNAL_ERROR),
    "a command with a body": (content(SUB_COMMAND, None, b"x"), ErrorCode.INTERNAL_ERROR),
    "flow with an unknown unit": (
        SUB + command(c.MessageFlow("d", 2, 1)), ErrorCode.INVALID_ARGUMENT),
    "flow without a unit": (SUB + command(c.MessageFlow("d")), ErrorCode.INVALID_ARGUMENT),
    "an unknown mode": (SUB + command(c.MessageSetFlowMode("d", 2)), ErrorCode.INVALID_ARGUMENT),
    "an unknown accept-mode": (
        command(c.MessageSubscribe("q", "d", 2)), ErrorCode.INVALID_ARGUMENT),
    "a transaction": (
        command(UnknownCommand(code=0x0F01, octets=b"\0\0")), ErrorCode.NOT_IMPLEMENTED),
    "flow to nobody": (command(c.MessageFlow("d", 0, 1)), ErrorCode.NOT_FOUND),
    "stop of nobody": (command(c.MessageStop("d")), ErrorCode.NOT_FOUND),
    "cancel of nobody": (command(c.MessageCancel("d")), ErrorCode.NOT_FOUND),
    "a destination twice": (SUB + SUB, ErrorCode.NOT_ALLOWED),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_a_session_that_breaks_a_rule_is_detached_and_others_live(name):
    """execution.exception with the code, then detach; the connection goes on."""
    octets, code = BAD[name]
    pair = Pair()
    other = pair.client.amqp.attach(b"other")
    pair.pump()
    pair.server.feed(octets)
    assert fault(pair) == (Scope.SESSION, code)
    (told,) = pair.server.said(c.ExecutionException)
    assert (told.error_code, bool(told.description)) == (code, True)
    assert told.command_id == on_wire(pair.peer.received - 1)
    assert (told.field_index, told.error_info) == (0, {})
    pair.pump()
    assert [event.code for event in pair.client.of(ExceptionReceived)] == [code]
    assert pair.session.state is SessionState.DETACHED
    assert list(pair.server.amqp.channels) == [1]
    other.send(c.ExecutionSync(sync=True))
    pair.pump()
    assert not other.sent_incomplete


def test_a_command_without_a_command_point_has_no_id():
    """illegal-state."""
    pair = Pair(None)
    pair.server.feed(control(k.SessionAttach(b"s")) + command(c.ExecutionSync()))
    assert fault(pair) == (Scope.SESSION, ErrorCode.ILLEGAL_STATE)


@pytest.mark.parametrize(
    ("octets", "code"),
    [
        (control(k.SessionAttach(b"t")), DetachCode.TRANSPORT_BUSY),
        (encode_item(control_frame(1, k.SessionAttach(b"s"))), DetachCode.SESSION_BUSY),
        (encode_item(control_frame(9, k.SessionFlush(completed=True))), DetachCode.NOT_ATTACHED),
        (encode_item(control_frame(9, k.SessionDetach(b"u"))), DetachCode.NOT_ATTACHED),
    ],
)
def test_a_session_attached_twice_is_refused_and_the_first_lives(octets, code):
    """session.detached with the code, on that channel alone."""
    pair = Pair()
    pair.server.feed(octets)
    assert fault(pair) == (Scope.CHANNEL, code)
    assert [one.code for one in pair.server.said(k.SessionDetached)] == [code]
    assert list(pair.server.amqp.channels) == [0]
    assert pair.peer.attached


def test_the_same_attach_again_changes_nothing():
    """It is idempotent on its channel."""
    pair = Pair()
    before = len(pair.server.sent)
    pair.server.feed(control(k.SessionAttach(b"s")))
    assert len(pair.server.sent) == before
    assert pair.peer.attached


@pytest.mark.parametrize(
    "octets",
    [
        control(k.ConnectionOpen("/")),
        encode_item(control_frame(40_000, k.SessionAttach(b"t"))),
        encode_item(Frame(0, 3, b"x", False, True, True, True)),
    ],
)
def test_a_frame_that_cannot_be_closes_the_connection(octets):
    """framing-error, and every session with it."""
    pair = Pair()
    pair.server.feed(octets)
    assert fault(pair) == (Scope.CONNECTION, CloseCode.FRAMING_ERROR)
    pair.pump()
    assert pair.client.amqp.error[0] == CloseCode.FRAMING_ERROR
    assert pair.client.amqp.ended
    assert pair.server.amqp.ended


@pytest.mark.parametrize("octets", [command(c.ExecutionSync()), control(k.SessionAttach(b"s"))])
def test_nothing_but_the_conversation_comes_before_open(octets):
    """framing-error too."""
    pair = Pair(None)
    fresh = type(pair.server)(False)
    fresh.feed(encode_item(ProtocolHeader()) + octets)
    assert [type(one).__name__ for one in fresh.said(k.ConnectionClose)] == ["ConnectionClose"]


BODY = Frame(0, 3, b"x", False, True, True, True)
MESSAGE = list(frames_of(0, c.MessageTransfer("q"), Headers(), bytes(5000), max_frame_size=4096))


LATE = [[BODY], MESSAGE[2:], MESSAGE[3:], MESSAGE[:2] * 2, MESSAGE[:0:-1]]


@pytest.mark.parametrize("late", LATE)
@pytest.mark.parametrize("begun", [0, 2, 3])
def test_what_comes_of_a_message_for_a_session_that_has_ended_is_read_over(begun, late):
    """In whatever order, before the peer knows of it and after (`SessionHandler.cpp:handleIn`)."""
    pair = Pair()
    beginning, rest = (b"".join(map(encode_item, frames)) for frames in (MESSAGE[:begun], late))
    pair.server.feed(beginning)
    pair.server.amqp.answer(pair.peer.failed(ErrorCode.NOT_FOUND, "gone", 0, SUB_COMMAND))
    pair.server.feed(rest)
    pair.pump()
    pair.server.feed(rest)
    assert pair.server.of(Violation) == []
    assert pair.server.amqp.unfinished_octets == 0
    session = pair.client.amqp.attach(b"s")
    session.send(c.MessageTransfer("q"), Headers(), b"x")
    pair.pump()
    assert numbers(pair) == [0]


@pytest.mark.parametrize("asked", [None, SequenceSet(), SequenceSet(((0, 0),))])
def test_who_expects_what_comes_next_hears_where_it_is(asked):
    """By session.command-point, as in Qpid C++; nothing was sent that could be sent again."""
    pair = Pair()
    pair.server.feed(control(k.SessionExpected(asked, ())))
    assert pair.server.said(k.SessionCommandPoint) == [k.SessionCommandPoint(0, 0)] * 2


def test_another_protocol_is_answered_with_ours():
    """Then nothing more is said."""
    fresh = type(Pair(None).server)(False)
    fresh.feed(encode_item(ProtocolHeader(1, 1, 0, 9)))
    assert fresh.sent == [ProtocolHeader()]
    assert fresh.amqp.ended


def test_damaged_octets_end_a_session_or_the_connection():
    """Whatever comes: an event or a violation, never another exception, and answers go on."""
    chooser, found = random.Random(10), 0
    octets = (
        b"".join(control(kind()) for kind in CONTROLS.values() if kind.CODE >> 8 == 2)
        + b"".join(map(command, (SUB_COMMAND, *[kind() for kind in COMMANDS.values()]))) * 2
    )
    for _ in range(300):
        damaged = bytearray(octets)
        for _ in range(chooser.choice((1, 3, 9))):
            damaged[chooser.randrange(len(damaged))] = chooser.randrange(256)
        pair = Pair()
        cut = chooser.randrange(len(damaged))
        for piece in (damaged[:cut], damaged[cut:]):
            pair.server.feed(bytes(piece))
        pair.client.feed(b"".join(pair.server.out))
        found += bool(pair.server.of(Violation))
    assert found > 250


def test_syncs_that_wait_are_bounded():
    """Each would be an id to keep."""
    pair = Pair()
    pair.server.kept = (c.MessageTransfer,)
    pair.session.send(c.MessageTransfer("q"), Headers(), b"x")
    pair.pump()
    pair.server.feed(command(c.ExecutionSync()) * (MOST_SYNCS + 1))
    assert fault(pair) == (Scope.SESSION, ErrorCode.RESOURCE_LIMIT_EXCEEDED)


def test_subscriptions_are_bounded():
    """Each would be a consumer."""
    pair = Pair()
    many = [command(c.MessageSubscribe("q", f"{n}")) for n in range(MOST_SUBSCRIPTIONS + 1)]
    pair.server.feed(b"".join(many))
    assert fault(pair) == (Scope.SESSION, ErrorCode.RESOURCE_LIMIT_EXCEEDED)


def test_a_detached_session_is_forgotten_by_both():
    """detach, detached; the channel is free for another."""
    pair = Pair()
    pair.session.detach()
    pair.pump()
    assert pair.client.of(SessionDetached)[0].code == DetachCode.NORMAL
    assert pair.client.amqp.channels == pair.server.amqp.channels == {}
    with pytest.raises(LocalProtocolError, match="legal now"):
        pair.session.send(c.ExecutionSync())
    pair.client.amqp.attach(b"s")
    pair.pump()
    assert pair.server.amqp.channels[0].attached


def test_the_tables_are_whole():
    """Every line of the conversation has a speaker, every state a row."""
    assert set(CONNECTION_TABLE) == set(ConnectionState)
    assert set(SESSION_TABLE) == set(SessionState)
    lines = {line for row in CONNECTION_TABLE.values() for line in row}
    assert lines - {"connection.close-ok"} == set(SPEAKERS)
