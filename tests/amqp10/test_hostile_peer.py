"""Whatever a peer sends, in any order: no crash, no counter out of range, no illegal answer."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.amqp10 import strategies as gen
from tests.amqp10.pair import LinkPair
from workbench.amqp10.frame import Frame, encode_item
from workbench.amqp10.messaging import Accepted, Source, Target
from workbench.amqp10.performatives import (
    Attach,
    Begin,
    Close,
    Detach,
    Disposition,
    End,
    Flow,
    Open,
    ReceiverSettleMode,
    Role,
    Transfer,
)
from workbench.amqp10.settings import ConnectionSettings, SessionSettings

few = st.integers(0, 2)
ids = st.one_of(st.integers(0, 4), st.sampled_from([2147483647, 2147483648, 4294967295]))
maybe = st.none() | ids
flags = st.sampled_from([None, False, True])
roles = st.sampled_from(Role)

PERFORMATIVES = st.one_of(
    st.builds(Open, container_id=st.just("x"), max_frame_size=st.none() | st.integers(0, 1000)),
    st.builds(
        Begin, remote_channel=st.none() | few, next_outgoing_id=ids, incoming_window=ids,
        outgoing_window=ids, handle_max=maybe,
    ),
    st.builds(
        Attach, name=st.sampled_from("lab"), handle=few, role=roles,
        rcv_settle_mode=st.none() | st.sampled_from(ReceiverSettleMode),
        source=st.none() | st.builds(Source), target=st.none() | st.builds(Target),
        initial_delivery_count=maybe, max_message_size=maybe,
    ),
    st.builds(
        Flow, next_incoming_id=maybe, incoming_window=ids, next_outgoing_id=ids,
        outgoing_window=ids, handle=st.none() | few, delivery_count=maybe, link_credit=maybe,
        available=maybe, drain=flags, echo=flags,
    ),
    st.builds(
        Transfer, handle=few, delivery_id=maybe, delivery_tag=st.none() | st.binary(max_size=2),
        message_format=st.none() | st.just(0), settled=flags, more=flags, aborted=flags,
        resume=flags, state=st.none() | st.builds(Accepted),
    ),
    st.builds(
        Disposition, role=roles, first=ids, last=maybe, settled=flags,
        state=st.none() | st.builds(Accepted),
    ),
    st.builds(Detach, handle=few, closed=flags),
    st.builds(End),
    st.builds(Close),
)  # fmt: skip


ANY = gen.frames | gen.headers
QUARTERS = st.integers(0, 3)
PAYLOADS = st.binary(max_size=600)
CHANNELS = st.sampled_from([0, 0, 0, 1])


@st.composite
def items(draw):
    """Mostly frames with numbers that hit something, sometimes any frame at all."""
    if draw(QUARTERS) == 0:
        return draw(ANY)
    performative = draw(PERFORMATIVES)
    payload = draw(PAYLOADS) if isinstance(performative, Transfer) else b""
    return Frame(draw(CHANNELS), performative, payload)


ACTS = st.sampled_from(["send", "grant", "settle", "flow", "none"])


@settings(derandomize=True, deadline=None, max_examples=500)
@given(st.lists(st.tuples(items(), st.booleans(), ACTS), max_size=12), st.booleans())
def test_no_peer_can_break_an_endpoint(steps, server_sends):
    """Every frame is worked in, dropped, or a violation with a legal answer."""
    pair = LinkPair(
        server_sends=server_sends,
        server=ConnectionSettings(max_frame_size=512),
        server_session=SessionSettings(incoming_window=4, regrant_at=1),
    )
    pair.answers = False
    pair.receiver.grant(5)
    pair.pump()
    end = pair.server.connection
    link = pair.sender if server_sends else pair.receiver
    for item, answers, act in steps:
        sent = len(pair.server.sent)
        events = end.apply(item)
        assert len(pair.server.sent) == sent, "apply sends nothing"
        end.scope(item, False)
        if answers:
            for event in events:
                end.answer(event)
        _act(link, act)
        for name, value in end.overview().items():
            if isinstance(value, int):
                assert 0 <= value <= 4294967295, name
    for item in pair.server.sent:
        encode_item(item)
    if end.ended:
        assert end.apply(Frame(0)) == []


def _act(link, act):
    """Something the owner does meanwhile, where it is legal."""
    if not link.attached or not link.session.can_emit():
        return
    if act == "flow":
        link.flow()
    elif act == "send" and link.is_sender and link.can_send:
        link.send(bytes(700))
    elif act == "grant" and not link.is_sender:
        link.grant(3)
    elif act == "settle" and link.unsettled:
        known = link.session.outgoing if link.is_sender else link.session.incoming
        for delivery_id in [one for one in link.unsettled if one in known]:
            if not link.is_sender:
                link.settle(delivery_id, settled=None)
            else:
                link.settle(delivery_id)
