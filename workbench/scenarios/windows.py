"""Lesson 04: the windows of sessions, which count transfer frames.

One client on one connection. Its first session has receiving links from a queue with messages, and
perhaps a sending link; a second session may be begun later. How many frames a message takes follows
from its size and the frame sizes of both ends; how many frames may come follows from the windows.
Acts: grant, open_window, publish, ignore_window, alarm, clear, begin_session, acknowledge, hold,
release, set_latency.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

from workbench.amqp10.settings import SessionSettings
from workbench.peers import ClientLink, Consumer, OneByOne, Publisher
from workbench.presets import UINT_MAX

from .action import ActionError, refusal
from .acts import WIRE_ACTS
from .alarms import ALARM_ACTS
from .credit import MAX_OCTETS, client_of, session_settings
from .declare import PRESET, OneOf, ParameterError, Whole, act, scenario, unless
from .parameters import Credit, Latency, MessageBytes, SocketOctets
from .world import World

QUEUE, TARGET, EXPRESS = "q", "t", "express"
RECEIVERS = ("in1", "in2", "in3")
OUT, OUT_EXPRESS = "out", "out2"
SENDERS = (OUT, OUT_EXPRESS)
MAX_CONSUMERS = len(RECEIVERS)
MAX_SESSIONS = 2
MAX_MESSAGES = 20_000
MAX_SERVICE_US = 1_000_000

Receiver = Annotated[
    str, OneOf(*RECEIVERS, EXPRESS), "which receiving link; express is that of the second session"
]
Ready = Annotated[int, Whole(0, MAX_MESSAGES, "messages"), "ready in the queue"]
Frames = Annotated[int, Whole(0, UINT_MAX, "frames")]
FrameSize = Annotated[int, Whole(512, UINT_MAX, "octets")]
FirstId = Annotated[int, Whole(0, UINT_MAX, "transfer-number")]
Service = Annotated[int, Whole(0, MAX_SERVICE_US, "us")]


@dataclass(frozen=True, slots=True)
class Once:
    """Grants so much credit when the links are attached, and nothing afterwards.

    Attributes:
        link_credit: 0 grants nothing.
    """

    link_credit: int

    def initial(self) -> int | None:
        """The only grant."""
        return self.link_credit or None

    def after_delivery(self, link_credit: int, processed: int) -> int | None:
        """None."""
        return None


def windows_of(world: World) -> SessionSettings:
    """The client's half of each session: its window, and whether it opens it again by itself."""
    window = world.number("client_window")
    return replace(
        session_settings(world.preset),
        incoming_window=window,
        regrant_at=window // 2 if world.parameters["reopens"] else None,
    )


def _follow_window(world: World) -> None:
    """What follows from the broker's window: when it opens again, and what an alarm tolerates."""
    numbers: dict[str, int | None] = {"incoming_window_regrant_at": None}
    if world.preset.alarm_margin:
        numbers["alarm_margin"] = world.preset.incoming_window
    world.broker.configure(**numbers)


# -- acts -----------------------------------------------------------------------------------


def _is_attached(world: World) -> bool:
    client = world.peers["client"]
    return client.ended or (client.attached and not client.beginning)


_attached = unless("windows.not-attached", _is_attached)
_publishes = unless("windows.no-publisher", lambda world: world.parameters["publisher"])
_heeds = unless("windows.ignores", lambda world: not world.peers["client"].ignoring)


def _two_sessions(world: World) -> str | None:
    if len(world.peers["client"].sessions) == MAX_SESSIONS:
        return refusal("windows.all-begun", sessions=MAX_SESSIONS)
    return None


@act(_attached)
def grant(
    world: World,
    link_credit: Annotated[Credit, "how many more messages may come"],
    link: Receiver = RECEIVERS[0],
) -> None:
    """Set the credit of a receiving link; the flow tells the window as well."""
    world.peers["client"].consumer(link).grant(link_credit)


@act(_attached)
def open_window(
    world: World,
    frames: Annotated[Frames, "how many more transfer frames may come"],
    session: Annotated[int, Whole(1, MAX_SESSIONS), "which session"] = 1,
) -> None:
    """Set how many transfer frames the client takes on a session, and tell the broker."""
    world.peers["client"].open_window(session, frames)


@act(_publishes, _attached)
def publish(
    world: World,
    count: Annotated[int, Whole(1, MAX_MESSAGES, "messages"), "how many messages"] = 1,
    link: Annotated[
        str, OneOf(*SENDERS), "over which link; out2 is that of the second session"
    ] = OUT,
) -> None:
    """Let the client publish; each message waits for credit and window."""
    client, size = world.peers["client"], world.number("message_bytes")
    if count * size > MAX_OCTETS:
        told = {"count": count, "size": size, "most": MAX_OCTETS}
        raise ActionError(refusal("windows.too-much", **told))
    publisher = client.publisher(link)  # refuses before a message is made
    publisher.publish(world.payloads(count))


@act(_heeds, _publishes, _attached)
def ignore_window(world: World) -> None:
    """Let the client send whatever the broker's window is, against the specification."""
    world.peers["client"].ignore_window()


@act(_two_sessions, _attached)
def begin_session(
    world: World, link_credit: Annotated[Credit, "that it grants at once; 0: by hand"] = 10
) -> None:
    """Begin a second session on the same connection, with a link from the queue express."""
    links: list[ClientLink] = [Consumer(EXPRESS, EXPRESS, policy=Once(link_credit))]
    if world.parameters["publisher"]:
        links.append(Publisher(OUT_EXPRESS, TARGET))
    world.peers["client"].begin_session(links)


@act(_attached)
def acknowledge(world: World, link: Receiver = RECEIVERS[0]) -> None:
    """Accept everything that came over a link; neither window nor credit comes of it."""
    consumer = world.peers["client"].consumer(link)
    if not consumer.unsettled:
        raise ActionError(refusal("windows.nothing-unsettled", link=link))
    consumer.acknowledge()


@scenario(
    "The windows of sessions",
    acts=(
        grant, open_window, publish, ignore_window, *ALARM_ACTS, begin_session, acknowledge,
        *WIRE_ACTS,
    ),
)  # fmt: skip
def windows(
    world: World,
    messages: Ready = 5,
    message_bytes: MessageBytes = PRESET,
    consumers: Annotated[
        int,
        Whole(0, MAX_CONSUMERS, "links"),
        "receiving links of the first session, all from one queue",
    ] = 1,
    link_credit: Annotated[Credit, "that each of them grants at once; 0: by hand"] = 0,
    publisher: Annotated[bool, "the client has a sending link on each session too"] = False,
    publish_us: Annotated[Service, "what the client needs for each message that it publishes"] = 0,
    express: Annotated[Ready, "ready in the queue of the second session"] = 3,
    client_window: Annotated[
        Frames, "transfer frames that the client takes on a session before it says more"
    ] = PRESET.client_incoming_window,
    reopens: Annotated[
        bool, "the client opens its window again by itself when half of it is used"
    ] = False,
    broker_window: Annotated[
        Frames, "transfer frames that the broker takes on a session before it says more"
    ] = PRESET.incoming_window,
    max_frame_size: Annotated[
        FrameSize, "largest frame that the client accepts"
    ] = PRESET.client_max_frame_size,
    broker_frame_size: Annotated[
        FrameSize, "largest frame that the broker accepts"
    ] = PRESET.max_frame_size,
    client_first_id: Annotated[
        FirstId, "number of the first transfer frame that the client sends on a session"
    ] = PRESET.client_initial_next_outgoing_id,
    broker_first_id: Annotated[
        FirstId, "number of the first transfer frame that the broker sends on a session"
    ] = PRESET.initial_next_outgoing_id,
    reader_us: Annotated[Service, "what the broker's reader needs for a frame"] = PRESET,
    session_us: Annotated[
        Service, "what a session of the broker needs for a frame, or for a queue's message"
    ] = PRESET,
    writer_us: Annotated[Service, "what the broker's writer needs for a frame"] = PRESET,
    socket_octets: SocketOctets = 0,
    latency_us: Latency = PRESET.wire_latency_us,
) -> None:
    """A client that receives, and perhaps publishes, on one session or two.

    Windows count transfer frames, credit counts messages; a person opens and closes both.
    """
    if (messages + express) * message_bytes > MAX_OCTETS:
        told = {"count": messages, "size": message_bytes, "most": MAX_OCTETS}
        raise ParameterError(refusal("windows.too-much-for-a-run", **told))
    if not consumers and not publisher:
        raise ParameterError(refusal("windows.no-link"))
    for name, ready in ((QUEUE, messages), (EXPRESS, express)):
        world.fill(name, ready)
    rule = Once(link_credit)
    links: list[ClientLink] = [Consumer(name, QUEUE, policy=rule) for name in RECEIVERS[:consumers]]
    if publisher:
        links.append(Publisher(OUT, TARGET))
    client = client_of(
        world,
        *links,
        name="app",
        sending=OneByOne(publish_us),
        session_settings=windows_of(world),
        on_attached=world.mark_start,
    )
    _follow_window(world)
    world.connect(client, "c1", socket_octets, peer="client")
