"""Lesson 04: the windows of sessions, which count transfer frames.

One client on one connection. Its first session has receiving links from a queue with messages, and
perhaps a sending link; a second session may be begun later. How many frames a message takes follows
from its size and the frame sizes of both ends; how many frames may come follows from the windows.
Acts: grant, open_window, publish, ignore_window, alarm, clear, begin_session, acknowledge, hold,
release, set_latency.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from workbench.amqp10.settings import SessionSettings
from workbench.peers import ClientLink, Consumer, OneByOne, Publisher
from workbench.presets import UINT_MAX

from .action import ActionError
from .acts import WIRE_ACTS
from .alarms import ALARM_ACTS
from .credit import MAX_OCTETS, client_of, session_settings
from .declare import ActionSpec, Kind, Parameter, ParameterError, Scenario
from .parameters import LATENCY_US, MESSAGE_BYTES, SOCKET_OCTETS
from .registry import register
from .world import World

QUEUE, TARGET, EXPRESS = "q", "t", "express"
RECEIVERS = ("in1", "in2", "in3")
OUT, OUT_EXPRESS = "out", "out2"
SENDERS = (OUT, OUT_EXPRESS)
MAX_CONSUMERS = len(RECEIVERS)
MAX_SESSIONS = 2
MAX_MESSAGES = 20_000
MAX_SERVICE_US = 1_000_000


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


def build(world: World) -> None:
    """A queue with messages, and a client with one session."""
    count, size = world.number("messages"), world.number("message_bytes")
    if (count + world.number("express")) * size > MAX_OCTETS:
        raise ParameterError(
            f"{count} messages of {size} octets are too much for one run; legal together: up to"
            f" {MAX_OCTETS} octets"
        )
    consumers, publishes = world.number("consumers"), bool(world.parameters["publisher"])
    if not consumers and not publishes:
        raise ParameterError("consumers is 0 and publisher is False: there is no link; legal: one")
    queue, express = world.broker.declare(QUEUE), world.broker.declare(EXPRESS)
    world.clock.call_soon(queue.fill, world.messages(size, count))
    waiting = world.messages(size, world.number("express"))
    world.clock.call_soon(express.fill, waiting)

    def attached() -> None:
        if world.start_seq is None:
            world.mark_start()

    rule = Once(world.number("link_credit"))
    links: list[ClientLink] = [Consumer(name, QUEUE, policy=rule) for name in RECEIVERS[:consumers]]
    if publishes:
        links.append(Publisher(OUT, TARGET))
    client = world.peers["client"] = client_of(
        world,
        *links,
        name="app",
        sending=OneByOne(world.number("publish_us")),
        session_settings=windows_of(world),
        on_attached=attached,
    )
    _follow_window(world)
    latency = world.number("latency_us")
    capacity = world.number("socket_octets") or None
    world.connect(client, "c1", (latency, latency), capacity)


def _follow_window(world: World) -> None:
    """What follows from the broker's window: when it opens again, and what an alarm tolerates."""
    numbers: dict[str, int | None] = {"incoming_window_regrant_at": None}
    if world.preset.alarm_margin:
        numbers["alarm_margin"] = world.preset.incoming_window
    world.broker.configure(**numbers)


# -- acts -----------------------------------------------------------------------------------


def _not_attached(world: World) -> str | None:
    client = world.peers["client"]
    if client.ended or (client.attached and not client.beginning):
        return None
    return "a link is not attached yet; legal now: alarm, hold, release, set_latency"


def _no_publisher(world: World) -> str | None:
    if not world.parameters["publisher"]:
        return "this client publishes nothing; legal in a run with publisher=True"
    return _not_attached(world)


def _ignores(world: World) -> str | None:
    if world.peers["client"].ignoring:
        return "the client ignores the window already; legal now: publish"
    return _no_publisher(world)


def _two_sessions(world: World) -> str | None:
    if len(world.peers["client"].sessions) == MAX_SESSIONS:
        return f"{MAX_SESSIONS} sessions were begun, more this run does not have; legal now: grant"
    return _not_attached(world)


def publish(world: World, *, count: int, link: str) -> None:
    """Hand messages to a sending link."""
    client, size = world.peers["client"], world.number("message_bytes")
    if count * size > MAX_OCTETS:
        raise ActionError(
            f"{count} messages of {size} octets are too much; legal together: up to {MAX_OCTETS}"
            " octets"
        )
    publisher = client.publisher(link)  # refuses before a message is made
    publisher.publish([world.message(size) for _ in range(count)])


def begin_session(world: World, *, link_credit: int) -> None:
    """A second session on the same connection, with a link from a queue of its own."""
    links: list[ClientLink] = [Consumer(EXPRESS, EXPRESS, policy=Once(link_credit))]
    if world.parameters["publisher"]:
        links.append(Publisher(OUT_EXPRESS, TARGET))
    world.peers["client"].begin_session(links)


def acknowledge(world: World, *, link: str) -> None:
    """Accept everything that came over a link; neither window nor credit comes of it."""
    consumer = world.peers["client"].consumer(link)
    if not consumer.unsettled:
        raise ActionError(f"nothing of {link} is unsettled; legal now: grant, open_window")
    consumer.acknowledge()


def _number(name: str, doc: str, unit: str, most: int = UINT_MAX, **more: Any) -> Parameter:
    more.setdefault("minimum", 0)
    return Parameter(name=name, doc=doc, unit=unit, maximum=most, **more)


_RECEIVER = Parameter(
    name="link",
    kind=Kind.TEXT,
    default=RECEIVERS[0],
    choices=(*RECEIVERS, EXPRESS),
    doc="which receiving link; express is that of the second session",
)
ACTS = (
    ActionSpec(
        name="grant",
        doc="set the credit of a receiving link; the flow tells the window as well",
        parameters=(
            _number("link_credit", "how many more messages may come", "messages", required=True),
            _RECEIVER,
        ),
        legal=_not_attached,
        apply=lambda world, *, link_credit, link: (
            world.peers["client"].consumer(link).grant(link_credit)
        ),
    ),
    ActionSpec(
        name="open_window",
        doc="set how many transfer frames the client takes on a session, and tell the broker",
        parameters=(
            _number("frames", "how many more transfer frames may come", "frames", required=True),
            _number("session", "which session", "", MAX_SESSIONS, minimum=1, default=1),
        ),
        legal=_not_attached,
        apply=lambda world, *, frames, session: world.peers["client"].open_window(session, frames),
    ),
    ActionSpec(
        name="publish",
        doc="let the client publish; each message waits for credit and window",
        parameters=(
            _number("count", "how many messages", "messages", MAX_MESSAGES, minimum=1, default=1),
            Parameter(
                name="link",
                kind=Kind.TEXT,
                default=OUT,
                choices=SENDERS,
                doc="over which link; out2 is that of the second session",
            ),
        ),
        legal=_no_publisher,
        apply=publish,
    ),
    ActionSpec(
        name="ignore_window",
        doc="let the client send whatever the broker's window is, against the specification",
        legal=_ignores,
        apply=lambda world: world.peers["client"].ignore_window(),
    ),
    *ALARM_ACTS,
    ActionSpec(
        name="begin_session",
        doc="begin a second session on the same connection, with a link from the queue express",
        parameters=(
            _number("link_credit", "that it grants at once; 0: by hand", "messages", default=10),
        ),
        legal=_two_sessions,
        apply=begin_session,
    ),
    ActionSpec(
        name="acknowledge",
        doc="accept everything that came over a link; neither window nor credit comes of it",
        parameters=(_RECEIVER,),
        legal=_not_attached,
        apply=acknowledge,
    ),
    *WIRE_ACTS,
)


def _of_preset(name: str, field: str, doc: str, unit: str, **more: Any) -> Parameter:
    return _number(name, doc, unit, **{"most": UINT_MAX, **more}, preset_field=field)


WINDOWS = register(
    Scenario(
        name="windows",
        title="The windows of sessions",
        doc=(
            "A client that receives, and perhaps publishes, on one session or two. Windows count"
            " transfer frames, credit counts messages; a person opens and closes both."
        ),
        parameters=(
            _number("messages", "ready in the queue", "messages", MAX_MESSAGES, default=5),
            MESSAGE_BYTES,
            _number(
                "consumers",
                "receiving links of the first session, all from one queue",
                "links",
                MAX_CONSUMERS,
                default=1,
            ),
            _number(
                "link_credit", "that each of them grants at once; 0: by hand", "messages", default=0
            ),
            Parameter(
                name="publisher",
                kind=Kind.YES_NO,
                default=False,
                doc="the client has a sending link on each session too",
            ),
            _number(
                "publish_us",
                "what the client needs for each message that it publishes",
                "us",
                MAX_SERVICE_US,
                default=0,
            ),
            _number(
                "express",
                "ready in the queue of the second session",
                "messages",
                MAX_MESSAGES,
                default=3,
            ),
            _of_preset(
                "client_window",
                "client_incoming_window",
                "transfer frames that the client takes on a session before it says more",
                "frames",
            ),
            Parameter(
                name="reopens",
                kind=Kind.YES_NO,
                default=False,
                doc="the client opens its window again by itself when half of it is used",
            ),
            _of_preset(
                "broker_window",
                "incoming_window",
                "transfer frames that the broker takes on a session before it says more",
                "frames",
            ),
            _of_preset(
                "max_frame_size",
                "client_max_frame_size",
                "largest frame that the client accepts",
                "octets",
                minimum=512,
            ),
            _of_preset(
                "broker_frame_size",
                "max_frame_size",
                "largest frame that the broker accepts",
                "octets",
                minimum=512,
            ),
            _of_preset(
                "client_first_id",
                "client_initial_next_outgoing_id",
                "number of the first transfer frame that the client sends on a session",
                "transfer-number",
            ),
            _of_preset(
                "broker_first_id",
                "initial_next_outgoing_id",
                "number of the first transfer frame that the broker sends on a session",
                "transfer-number",
            ),
            _of_preset(
                "reader_us",
                "reader_us",
                "what the broker's reader needs for a frame",
                "us",
                most=MAX_SERVICE_US,
            ),
            _of_preset(
                "session_us",
                "session_us",
                "what a session of the broker needs for a frame, or for a queue's message",
                "us",
                most=MAX_SERVICE_US,
            ),
            _of_preset(
                "writer_us",
                "writer_us",
                "what the broker's writer needs for a frame",
                "us",
                most=MAX_SERVICE_US,
            ),
            SOCKET_OCTETS,
            LATENCY_US,
        ),
        actions=ACTS,
        build=build,
    )
)
