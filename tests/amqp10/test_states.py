"""State tables: what the specification's drawings say, and that the endpoint runs these tables."""

from collections import deque

import pytest

from workbench.amqp10.connection import Connection
from workbench.amqp10.errors import LocalProtocolError
from workbench.amqp10.events import ProtocolViolation
from workbench.amqp10.frame import Frame, ProtocolHeader
from workbench.amqp10.messaging import Source, Target
from workbench.amqp10.performatives import (
    Attach,
    Begin,
    Close,
    Detach,
    End,
    Error,
    Flow,
    Open,
    Role,
)
from workbench.amqp10.states import (
    CONNECTION_TABLE,
    LINK_TABLE,
    SESSION_TABLE,
    ConnectionState,
    Input,
    LinkState,
    SessionState,
    legal_inputs,
    next_state,
    require,
)

ERROR = Error(condition="amqp:internal-error")


def paths(table, start, way=()):
    """The shortest way to each state that can be reached, from where `way` has led."""
    found, todo = {start: way}, deque([start])
    while todo:
        state = todo.popleft()
        for step, following in table[state].items():
            if following not in found:
                found[following] = (*found[state], step)
                todo.append(following)
    return found


def inputs_of(table):
    return {step for row in table.values() for step in row}


CONNECTION_PATHS = paths(CONNECTION_TABLE, ConnectionState.START)
SESSION_PATHS = paths(SESSION_TABLE, SessionState.UNMAPPED)
LINK_PATHS = paths(LINK_TABLE, LinkState.DETACHED)

# The short ways to an ending leave out the peer's begin or attach, which is then still to come.
# For all other inputs the ending has to begin where both ends were there.
PIPELINED = {Input.SEND_BEGIN, Input.RECV_BEGIN, Input.SEND_ATTACH, Input.RECV_ATTACH}
FULL_PATHS = {
    **CONNECTION_PATHS,
    **SESSION_PATHS,
    **LINK_PATHS,
    **{
        state: way
        for table, middle, found in (
            (SESSION_TABLE, SessionState.MAPPED, SESSION_PATHS),
            (LINK_TABLE, LinkState.ATTACHED, LINK_PATHS),
        )
        for state, way in paths(table, middle, found[middle]).items()
        if state.value.startswith(("END_", "DISCARDING", "DETACH_"))
    },
}


@pytest.mark.parametrize(
    ("table", "states", "found"),
    [
        (CONNECTION_TABLE, ConnectionState, CONNECTION_PATHS),
        (SESSION_TABLE, SessionState, SESSION_PATHS),
        (LINK_TABLE, LinkState, LINK_PATHS),
    ],
)
def test_every_state_has_a_row_and_can_be_reached(table, states, found):
    """No state is forgotten, and none is there for nothing."""
    assert set(table) == set(states) == set(found)


# AMQP 1.0, 2.4.7: what may be sent and received in each state of a connection. `*` is anything
# that may come once the open has; `header` and `open` are named where they alone are legal.
SPEC_SENDS = {
    "START": "header", "HDR_RCVD": "header", "HDR_SENT": "open", "HDR_EXCH": "open",
    "OPEN_RCVD": "open", "OPEN_SENT": "*", "OPEN_PIPE": "*", "CLOSE_PIPE": "", "OC_PIPE": "",
    "OPENED": "*", "CLOSE_RCVD": "*", "CLOSE_SENT": "", "DISCARDING": "", "END": "",
}  # fmt: skip
SPEC_RECEIVES = {
    "START": "header", "HDR_RCVD": "open", "HDR_SENT": "header", "HDR_EXCH": "open",
    "OPEN_RCVD": "*", "OPEN_SENT": "open", "OPEN_PIPE": "header", "CLOSE_PIPE": "open",
    "OC_PIPE": "header", "OPENED": "*", "CLOSE_RCVD": "", "CLOSE_SENT": "*", "DISCARDING": "*",
    "END": "",
}  # fmt: skip


@pytest.mark.parametrize("name", SPEC_SENDS)
@pytest.mark.parametrize("outgoing", [True, False])
def test_connection_states_allow_what_the_specification_allows(name, outgoing):
    """Legal sends and receives per state [2.4.7]."""
    wanted = (SPEC_SENDS if outgoing else SPEC_RECEIVES)[name]
    steps = legal_inputs(CONNECTION_TABLE, ConnectionState(name), outgoing=outgoing)
    words = {step.words for step in steps}
    if wanted == "*":
        assert {"frame", "close"} <= words
        assert not {"header", "open"} & words - {"open" if name == "OPEN_SENT" else ""}
    else:
        assert words == ({wanted} if wanted else set())


def test_session_states_follow_the_drawing():
    """The arrows of the session's state drawing [2.5.5]."""
    s, i = SessionState, Input
    arrows = [
        (s.UNMAPPED, i.SEND_BEGIN, s.BEGIN_SENT),
        (s.UNMAPPED, i.RECV_BEGIN, s.BEGIN_RCVD),
        (s.BEGIN_SENT, i.RECV_BEGIN, s.MAPPED),
        (s.BEGIN_RCVD, i.SEND_BEGIN, s.MAPPED),
        (s.MAPPED, i.SEND_END, s.END_SENT),
        (s.MAPPED, i.SEND_ERROR_END, s.DISCARDING),
        (s.MAPPED, i.RECV_END, s.END_RCVD),
        (s.END_SENT, i.RECV_END, s.UNMAPPED),
        (s.DISCARDING, i.RECV_END, s.UNMAPPED),
        (s.END_RCVD, i.SEND_END, s.UNMAPPED),
    ]
    for state, step, following in arrows:
        assert next_state(SESSION_TABLE, state, step) is following


def test_a_refusal_names_the_state_and_what_would_be_legal():
    """The text of a local error is taken from the table."""
    with pytest.raises(LocalProtocolError) as caught:
        require(LINK_TABLE, LinkState.ATTACH_RCVD, Input.SEND_FRAME, "link orders")
    assert caught.value.message == (
        "link orders is in state ATTACH_RCVD: frame cannot be sent; legal now: attach"
    )
    with pytest.raises(LocalProtocolError, match="legal now: wait for header"):
        require(CONNECTION_TABLE, ConnectionState.OC_PIPE, Input.SEND_FRAME, "the connection")
    with pytest.raises(LocalProtocolError, match="legal now: nothing more"):
        require(CONNECTION_TABLE, ConnectionState.END, Input.SEND_OPEN, "the connection")


IDS = {"next_outgoing_id": 0, "incoming_window": 9, "outgoing_window": 9}


class Driver:
    """Does what an input says to a real endpoint; `at` is its session or link, once it has one."""

    def __init__(self):
        self.sent = []
        self.connection = Connection(container_id="c", is_client=False, emit=self.sent.append)
        self.events = []
        self.at = None

    def do(self, step):
        self.acts[step.name](self)

    def get(self, performative):
        self.events = self.connection.apply(Frame(0, performative))

    def there(self):
        """The session or link; what needs one is refused where there is none."""
        if self.at is None:
            raise LocalProtocolError("there is none yet")
        return self.at

    @property
    def state(self):
        return self.none if self.at is None else self.at.state

    def overview(self):
        picture = self.connection.overview()
        return {name: value for name, value in picture.items() if name != "frames_in"}


CONNECTION_ACTS = {
    "SEND_HEADER": lambda self: self.connection.send_header(),
    "SEND_OPEN": lambda self: self.connection.send_open(),
    "SEND_CLOSE": lambda self: self.connection.close(),
    "SEND_ERROR_CLOSE": lambda self: self.connection.close(ERROR),
    "SEND_FRAME": lambda self: self.connection.begin(),
    "RECV_HEADER": lambda self: setattr(self, "events", self.connection.apply(ProtocolHeader())),
    "RECV_OPEN": lambda self: self.get(Open(container_id="peer")),
    "RECV_CLOSE": lambda self: self.get(Close()),
    "RECV_FRAME": lambda self: self.get(None),
}


class ConnectionDriver(Driver):
    acts = CONNECTION_ACTS

    def __init__(self):
        super().__init__()
        self.at = self.connection


SESSION_ACTS = {
    "SEND_BEGIN": lambda self: self.send_begin(),
    "SEND_END": lambda self: self.there().end(),
    "SEND_ERROR_END": lambda self: self.there().end(ERROR),
    "SEND_FRAME": lambda self: self.there().flow(),
    "RECV_BEGIN": lambda self: self.recv_begin(),
    "RECV_END": lambda self: self.get(End()),
    "RECV_FRAME": lambda self: self.get(Flow(next_incoming_id=0, **IDS)),
}


class SessionDriver(Driver):
    none, acts = SessionState.UNMAPPED, SESSION_ACTS

    def __init__(self):
        super().__init__()
        for step in ("SEND_HEADER", "RECV_HEADER", "SEND_OPEN", "RECV_OPEN"):
            CONNECTION_ACTS[step](self)

    def send_begin(self):
        if self.at is None:
            self.at = self.connection.begin()
        else:
            self.at.send_begin(None, None)

    def recv_begin(self):
        """The answer to ours, if that has none; else another one on the same channel."""
        waits = self.at is not None and self.at.remote_channel is None
        self.get(Begin(remote_channel=self.at.channel if waits else None, **IDS))
        if self.at is None:
            (self.at,) = self.connection.sessions


LINK_ACTS = {
    "SEND_ATTACH": lambda self: self.send_attach(),
    "SEND_DETACH": lambda self: self.there().detach(),
    "SEND_ERROR_DETACH": lambda self: self.there().detach(error=ERROR),
    "SEND_FRAME": lambda self: self.there().grant(1),
    "RECV_ATTACH": lambda self: self.recv_attach(),
    "RECV_DETACH": lambda self: self.get(Detach(handle=7)),
    "RECV_FRAME": lambda self: self.get(
        Flow(next_incoming_id=0, handle=7, delivery_count=0, link_credit=0, **IDS)
    ),
}


class LinkDriver(SessionDriver):
    none, acts = LinkState.DETACHED, LINK_ACTS

    def __init__(self):
        super().__init__()
        self.send_begin()
        self.recv_begin()
        self.session, self.at = self.at, None

    def send_attach(self):
        if self.at is None:
            self.at = self.session.attach_receiver("l", "q")
        else:
            self.at.accept()

    def recv_attach(self):
        self.get(
            Attach(
                name="l", handle=7, role=Role.SENDER, initial_delivery_count=0,
                source=Source(), target=Target(),
            )
        )  # fmt: skip
        if self.at is None:
            self.at = self.session.links[-1]


SWEEP = [
    (driver, table, (found if step in PIPELINED else FULL_PATHS)[state], state, step)
    for driver, table, found in (
        (ConnectionDriver, CONNECTION_TABLE, CONNECTION_PATHS),
        (SessionDriver, SESSION_TABLE, SESSION_PATHS),
        (LinkDriver, LINK_TABLE, LINK_PATHS),
    )
    for state in table
    for step in sorted(inputs_of(table), key=lambda step: step.value)
]


@pytest.mark.parametrize(
    ("driver", "table", "path", "state", "step"),
    SWEEP,
    ids=[f"{state.__class__.__name__}.{state.name}-{step.value}" for _, _, _, state, step in SWEEP],
)
def test_every_input_in_every_state(driver, table, path, state, step):
    """The endpoint goes where the table says; a refused send leaves everything as it was.

    What the peer may not send gives a violation; before a link or session exists, and after it is
    over, some inputs begin a new one, which is another object's state.
    """
    endpoint = driver()
    for earlier in path:
        endpoint.do(earlier)
    assert endpoint.state is state
    following = next_state(table, state, step)
    before, sent = endpoint.overview(), len(endpoint.sent)
    if step.outgoing:
        if following is None:
            with pytest.raises(LocalProtocolError):
                endpoint.do(step)
            assert endpoint.overview() == before
            assert len(endpoint.sent) == sent
        else:
            endpoint.do(step)
            assert endpoint.state is following
            assert len(endpoint.sent) == sent + 1
        return
    endpoint.do(step)
    assert len(endpoint.sent) == sent, "apply sends nothing"
    if following is not None:
        assert endpoint.state is following
        assert not any(isinstance(event, ProtocolViolation) for event in endpoint.events)
    elif state is ConnectionState.END:
        assert endpoint.events == []
    else:
        assert endpoint.state is state
        wrong = any(isinstance(event, ProtocolViolation) for event in endpoint.events)
        # An attach of a name that is live takes the old link's place; behind the peer's end its
        # channel is free for another session.
        begins_another = step is Input.RECV_ATTACH or (state, step) == (
            SessionState.END_RCVD,
            Input.RECV_BEGIN,
        )
        assert wrong or begins_another
