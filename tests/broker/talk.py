"""Conversations with a broker, as `tests.conversation` reads them.

    ready 10; receive -> sent 0
    grant 3           -> sent 3 | credit 0
    grant 9 + echo    -> sent 10 | answers 2/0

After each act between semicolons all that is due happens; what `+` joins is said at once. `name:`
says whose link acts from now on, `name.` whose link or which queue is looked at; else it is the
link attached last, and the queue `q`.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from typing import Any

from tests.conversation import Conversation
from workbench import serial
from workbench.amqp10.events import DeliveryReceived
from workbench.amqp10.messaging import (
    Accepted,
    ApplicationProperties,
    Data,
    Header,
    MessageAnnotations,
    Modified,
    Properties,
    Rejected,
    Released,
    Source,
    Target,
    decode_message,
    encode_message,
)
from workbench.amqp10.performatives import (
    Begin,
    Close,
    Detach,
    Disposition,
    End,
    Flow,
    ReceiverSettleMode,
    SenderSettleMode,
    Transfer,
)
from workbench.amqp10.settings import ConnectionSettings, SessionSettings
from workbench.amqp10.values import Described, Int, Symbol
from workbench.frontends import message_of
from workbench.queues import QueueArguments

from .rig import Rig

OFFSET_SPEC = Symbol("rabbitmq:stream-offset-spec")
OUTCOMES = {
    "accepted": Accepted(),
    "rejected": Rejected(),
    "released": Released(),
    "modified": Modified(),
    "failed": Modified(delivery_failed=True),
    "undeliverable": Modified(undeliverable_here=True),
    "nothing": None,
}
MODES = {
    "unsettled": {"snd_settle_mode": SenderSettleMode.UNSETTLED},
    "settled": {"snd_settle_mode": SenderSettleMode.SETTLED},
    "mixed": {"snd_settle_mode": SenderSettleMode.MIXED},
    "second": {"rcv_settle_mode": ReceiverSettleMode.SECOND},
}


def message(text: str, **parts: Any) -> bytes:
    """A message, with header, annotation, properties and application properties as they are named.

    Args:
        text: the body.
        **parts: `ttl`, `priority`, `to`, `subject`, `cc` (routing keys with commas between them);
            anything else is an application property.
    """
    header = {name: parts.pop(name) for name in ("ttl", "priority") if name in parts}
    properties = {name: parts.pop(name) for name in ("to", "subject") if name in parts}
    keys = parts.pop("cc", None)
    sections = [
        Header(**header) if header else None,
        MessageAnnotations({Symbol("x-cc"): keys.split(",")}) if keys else None,
        Properties(**properties) if properties else None,
        ApplicationProperties(parts) if parts else None,
        Data(text.encode()),
    ]
    return encode_message([section for section in sections if section is not None])


def stream_from(place: Any, address: str = "q") -> Source:
    """A stream's source with an offset spec, described as clients do it."""
    spec = Described(OFFSET_SPEC, place)
    return Source(address=address, filter={OFFSET_SPEC: spec})


def text_of(payload: bytes) -> str:
    """A message's body; what is no message is its own body."""
    body = decode_message(payload)[-1].value if payload.startswith(b"\0") else payload
    return body.decode() if len(body) < 40 else f"{len(body)}_octets"


def condition(frame: Any) -> str:
    """Of an error: the symbol as text."""
    return str(getattr(frame.error.condition, "value", frame.error.condition))


class Talk(Conversation):
    """A broker under a preset, its clients, and what acts and sights are called.

    Args:
        preset: of the broker; `with name=number` changes it before anything else happens.
    """

    def __init__(self, preset: Any, **changes: Any) -> None:
        self.preset = replace(preset, **changes)
        self.rig: Any = None
        self.clients: dict[str, tuple[Any, Any]] = {}
        self.links: dict[str, Any] = {}
        self.link: Any = None
        self.settled = False
        self.flooded = 0
        self.marked = 0

    def do(self, act: str) -> None:
        if self.rig is None and not act.startswith("with "):
            self.rig = Rig(self.preset)
        super().do(act)

    def do_with(self, **changes: Any) -> None:
        """Another preset, before anything else."""
        self.preset = replace(self.preset, **changes)

    def turn_to(self, who: str) -> None:
        self.link = self.links[who]

    def go_on(self) -> None:
        if self.rig is not None:
            self.rig.rest()

    def look(self, name: str) -> Any:
        """A sight of a link or a queue, or else what a queue's machine has by that name."""
        whose, _, sight = name.rpartition(".")
        seen = getattr(self, f"see_{sight}", None)
        if seen is None:
            return getattr(self.rig.queue(whose or "q"), sight)
        return seen(self.links.get(whose, self.link))

    # -- acts: the broker -----------------------------------------------------------------------

    def do_queue(self, name: str, type: str = "classic", **arguments: Any) -> None:
        self.rig.broker.declare(name, QueueArguments(queue_type=type, **arguments))

    def do_bind(self, exchange: str, queue: str, key: Any = "", **arguments: Any) -> None:
        self.rig.broker.vhost.bind(exchange, queue, str(key), **arguments)

    def do_exchange(self, name: str, kind: str = "direct", alternate: str = "") -> None:
        arguments = {"alternate-exchange": alternate}
        self.rig.broker.vhost.routing.declare(name, kind, arguments=arguments)

    def do_ready(self, count: int, queue: str = "q", size: int = 0) -> None:
        texts = [b"x" * size if size else b"m%d" % number for number in range(count)]
        self.rig.broker.declare(queue).fill(map(message_of, texts))

    def do_publish(self, text: str, queue: str = "q") -> None:
        self.rig.broker.declare(queue).publish(message_of(text.encode()))

    def do_stall(self, queue: str = "q") -> None:
        self.rig.broker.declare(queue).stall()

    def do_resume(self, queue: str = "q") -> None:
        self.rig.broker.queues[queue].resume()

    def do_configure(self, **changes: Any) -> None:
        self.rig.broker.configure(**changes)

    def do_purge(self, queue: str = "q") -> None:
        self.rig.broker.vhost.purge(queue)

    def do_delete(self, queue: str = "q") -> None:
        self.deleted = self.rig.broker.delete(queue)

    def do_alarm(self, resource: str = "memory") -> None:
        self.rig.broker.set_alarm(resource)

    def do_clear(self, resource: str = "memory") -> None:
        self.rig.broker.clear_alarm(resource)

    def do_wait(self, ms: int) -> None:
        until = self.rig.clock.now_us + ms * 1000
        self.rig.clock.call_at(until, lambda: None)
        while self.rig.clock.now_us < until:
            self.rig.clock.step()

    # -- acts: a client -------------------------------------------------------------------------

    def do_client(self, name: str = "c1", frame: int = 0, **session: int) -> None:
        """Another client, or one that is there, speaks from now on."""
        if name not in self.clients:
            self.clients[name] = self.rig.raw(
                name,
                settings=ConnectionSettings(max_frame_size=frame) if frame else None,
                session_settings=SessionSettings(**session) if session else None,
            )
        self.client, self.session = self.clients[name]
        self.name = name

    def _session(self) -> Any:
        if not self.clients:
            self.do_client()
        return self.session

    def do_session(self) -> None:
        self.session = self.client.amqp.begin()

    def do_receive(
        self,
        name: str = "r",
        mode: str = "",
        *,
        of: str = "q",
        priority: int | None = None,
        at: Any = None,
        **terms: Any,
    ) -> None:
        """A consumer, perhaps with a priority, or of a stream from some place on."""
        terms |= MODES.get(mode, {})
        if priority is not None:
            terms["properties"] = {Symbol("rabbitmq:priority"): Int(priority)}
        source = of if at is None else stream_from(at, of)
        self.link = self.links[name] = self.rig.receiver(self._session(), source, name, **terms)

    def do_attach(self, name: str = "s", mode: str = "", *, to: str = "q", **terms: Any) -> None:
        """A publisher; to the anonymous terminus with `to=anywhere`."""
        terms |= MODES.get(mode, {})
        target = Target() if to == "anywhere" else to
        self.link = self.links[name] = self.rig.sender(self._session(), target, name, **terms)

    def do_window(self, frames: int) -> None:
        self._session().set_incoming_window(frames)
        self.session.flow()

    def do_ask(self) -> None:
        """An echo about no link."""
        self._session().flow(echo=True)

    def do_grant(self, credit: int, *how: str) -> None:
        self.link.grant(credit, **dict.fromkeys(how, True))

    def do_drain(self, credit: int, *how: str) -> None:
        self.do_grant(credit, "drain", *how)

    def do_echo(self, available: int | None = None) -> None:
        if available is not None:
            self.link.available = available
        self.link.flow(echo=True)

    def do_unsee(self, count: int) -> None:
        """The client counts as if it had not seen the last deliveries."""
        self.link.counters.delivery_count = (self.link.delivery_count - count) % serial.MODULUS

    def do_unsee_frames(self, count: int) -> None:
        counters = self.session.counters
        counters.next_incoming_id = (counters.next_incoming_id - count) % serial.MODULUS

    def do_settle(self, outcome: str = "accepted", *which: int) -> None:
        for delivery_id in which or tuple(self.link.unsettled):
            self.link.settle(delivery_id, state=OUTCOMES[outcome])

    def do_presettled(self) -> None:
        """All that is sent from now on is sent settled."""
        self.settled = True

    def do_unsettled(self) -> None:
        """And from now on unsettled."""
        self.settled = False

    def do_turns(self, count: int, *names: str) -> None:
        """So many messages at once, each by the next of these links."""
        for number in range(count):
            self.turn_to(names[number % len(names)])
            self.do_burst(1)

    def do_send(self, *what: Any, size: int = 0, **header: Any) -> None:
        """Messages of these texts, or so many; each is taken in before the next is sent."""
        for text in ["m"] * what[0] if isinstance(what[0], int) else what:
            octets = message("x" * size if size else str(text), **header)
            self.link.send(octets, settled=self.settled)
            self.rig.rest()

    def do_burst(self, count: int) -> None:
        """Messages `0`, `1`, ... at once."""
        for number in range(count):
            self.link.send(message(str(number)), settled=self.settled)

    def do_flood(self, most: int = 1000) -> None:
        """Messages as long as credit and window allow it."""
        self.flooded = 0
        while self.flooded < most and self.link.can_send:
            self.do_send(1)
            self.flooded += 1

    def do_heedless(self, count: int) -> None:
        """Messages of a client that minds neither the window nor its credit."""
        for _ in range(count):
            self.link.session.counters.remote_incoming_window = 100_000
            self.link.counters.link_credit = 100_000
            self.do_send(1)

    def do_detach(self) -> None:
        self.link.detach()

    def do_close(self) -> None:
        self.link.close()

    def do_end(self) -> None:
        """The session of a link."""
        self.link.session.end()

    def do_disconnect(self) -> None:
        self.client.amqp.close()

    def do_lose(self) -> None:
        self.rig.broker.connections[self.name].lost()

    def do_forget(self) -> None:
        """The client's endpoint, which uses no live name twice, knows of no link any more."""
        self.client.amqp.names.clear()

    def do_mark(self) -> None:
        """What comes from now on is `new`."""
        self.marked = len(self.client.received)

    # -- sights ---------------------------------------------------------------------------------

    def _told(self, link: Any, column: str) -> Any:
        return self.rig.broker.overview()[f"{self.name}.{link.name}.{column}"]

    def _flows(self, about_link: bool) -> list[Any]:
        return [one for one in self.client.frames(Flow) if (one.handle is not None) is about_link]

    def see_sent(self, _: Any) -> int:
        """Transfers that the client has got."""
        return len(self.client.frames(Transfer))

    def see_got(self, _: Any) -> list[str]:
        """Bodies of all messages that the client has got."""
        return [text_of(event.delivery.payload) for event in self.client.of(DeliveryReceived)]

    def see_holds(self, link: Any) -> list[str]:
        """Bodies of what a receiver has not settled."""
        return [text_of(delivery.payload) for delivery in link.unsettled.values()]

    def see_credit(self, link: Any) -> int:
        return link.credit

    def see_count(self, link: Any) -> int:
        """A receiver's delivery-count from where the broker began."""
        return serial.diff(link.delivery_count, self.preset.initial_delivery_count)

    def see_buffered(self, link: Any) -> int:
        return self._told(link, "buffered")

    def see_unconfirmed(self, link: Any) -> int:
        return self._told(link, "unconfirmed")

    def see_broker_credit(self, link: Any) -> int:
        """A link's credit as the broker has it."""
        return self._told(link, "link_credit")

    def see_broker_count(self, link: Any) -> int:
        return serial.diff(self._told(link, "delivery_count"), self.preset.initial_delivery_count)

    def see_consumers(self, _: Any) -> int:
        return len(self.rig.queue().consumers())

    def see_answers(self, _: Any) -> list[str]:
        """link-credit/available of the broker's flows to a consumer's link; `!` is drain."""
        flows = [one for one in self.client.frames(Flow) if one.available is not None]
        return [f"{one.link_credit}/{one.available}{'!' * bool(one.drain)}" for one in flows]

    def see_limits(self, _: Any) -> list[str]:
        """delivery-count@link-credit of the broker's flows about links."""
        return [f"{one.delivery_count}@{one.link_credit}" for one in self._flows(True)]

    def see_windows(self, _: Any) -> list[int]:
        """incoming-window of the broker's flows about no link."""
        return [one.incoming_window for one in self._flows(False)]

    def see_flows(self, _: Any) -> list[str]:
        """link-credit@delivery-count/incoming-window of all flows of the broker."""
        return [
            f"{'-' if one.handle is None else f'{one.link_credit}@{one.delivery_count}'}"
            f"/{one.incoming_window}"
            for one in self.client.frames(Flow)
        ]

    def see_echoes(self, _: Any) -> list[Any]:
        return [one.echo for one in self.client.frames(Flow)]

    def see_begun(self, _: Any) -> list[int]:
        """incoming-window of the broker's begins."""
        return [one.incoming_window for one in self.client.frames(Begin)]

    def see_broker_window(self, _: Any) -> int:
        return self.rig.broker.connections[self.name].amqp.sessions[0].counters.incoming_window

    def see_remote_window(self, _: Any) -> int:
        """What the client may still send."""
        return self.session.counters.remote_incoming_window

    def see_told(self, _: Any) -> list[str]:
        """Ids of the dispositions that came, each first-last."""
        frames = self.client.frames(Disposition)
        return [
            str(one.first) if one.last in (None, one.first) else f"{one.first}-{one.last}"
            for one in frames
        ]

    def see_outcomes(self, _: Any) -> list[str]:
        """Outcomes that came; as `accepted*3` for three deliveries one behind the other."""
        found: list[str] = []
        for one in self.client.frames(Disposition):
            last = one.first if one.last is None else one.last
            found += [one.state.NAME] * (last - one.first + 1)
        runs = ((name, len(list(same))) for name, same in groupby(found))
        return [name if count == 1 else f"{name}*{count}" for name, count in runs]

    def see_detaches(self, _: Any) -> list[str]:
        """Conditions of the detaches that came."""
        return [condition(one) for one in self.client.frames(Detach) if one.error]

    def see_ends(self, _: Any) -> list[str]:
        return [condition(one) for one in self.client.frames(End) if one.error]

    def see_closes(self, _: Any) -> list[str]:
        return [condition(one) for one in self.client.frames(Close) if one.error]

    def see_new(self, _: Any) -> list[str]:
        """What came since the mark."""
        return [item.performative.NAME for item in self.client.received[self.marked :]]

    def see_last(self, _: Any) -> str:
        return self.client.received[-1].performative.NAME

    def see_flooded(self, _: Any) -> int:
        return self.flooded

    def see_queues(self, _: Any) -> list[str]:
        return list(self.rig.broker.queues)

    def see_connections(self, _: Any) -> int:
        return len(self.rig.broker.connections)

    def _last(self, link: Any, kind: type) -> Any:
        """A section of the message that came last, or None."""
        sections = decode_message(list(link.unsettled.values())[-1].payload)
        return next((one for one in sections if isinstance(one, kind)), None)

    def see_ttl(self, link: Any) -> int | None:
        """Of the message that came last."""
        header = self._last(link, Header)
        return None if header is None else header.ttl

    def see_deaths(self, link: Any) -> list[str]:
        """Queue, reason and count of the deaths of the message that came last."""
        told = self._last(link, MessageAnnotations).value
        deaths = told["x-opt-deaths"].items
        first = (told["x-first-death-queue"], told["x-first-death-reason"])
        assert first == (deaths[-1]["queue"], deaths[-1]["reason"])
        assert told["x-first-death-exchange"] == deaths[-1]["exchange"]
        assert told["x-last-death-queue"] == deaths[0]["queue"]
        return [f"{one['queue']}:{one['reason']}*{one['count']}" for one in deaths]

    def see_drops(self, _: Any) -> list[str]:
        """Dead letters that went nowhere: their queue, and why."""
        rows = [row for row in self.rig.recorder.rows if row.vantage == "broker"]
        return [f"{row.queue}:{row.extra['reason']}" for row in rows if row.event == "drop"]

    def see_stock(self, _: Any) -> dict[str, int]:
        """Messages ready, by queue."""
        return {name: queue.queue.ready for name, queue in self.rig.broker.queues.items()}

    def see_waits(self, link: Any) -> int:
        """Messages of a publisher that have no outcome yet."""
        return len(link.unsettled)

    def see_attached(self, link: Any) -> bool:
        return link.attached

    def see_mailbox(self, _: Any) -> int:
        """Of the queue's process."""
        return self.rig.broker.queues["q"].mailbox

    def see_deleted(self, _: Any) -> int:
        """Messages of the queue that was deleted last."""
        return self.deleted

    def see_alarms(self, _: Any) -> list[str]:
        """Resources of the alarms that were set and cleared."""
        return [row.kind for row in self.rig.recorder.rows if row.event.startswith("alarm")]

    def see_attach_no(self, _: Any) -> list[int]:
        """Of the link of each transfer in the trace."""
        return [row.attach_no for row in self.rig.recorder.rows if row.kind == "transfer"]

    def see_queue_grants(self, link: Any) -> list[int]:
        """Credits that the session has asked of the queue."""
        rows = [row for row in self.rig.recorder.rows if row.event == "grant"]
        return [row.extra["credit"] for row in rows if row.vantage == f"session:{self.name}/1"]
