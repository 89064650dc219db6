"""What the scenarios are made of: connections, runs with named steps, and the comparison of what a broker sent.

A `Connection` answers nothing by itself: it sends what a scenario tells it to and keeps what comes.
A `Run` is one scenario against one broker. It is divided into steps. A step mostly ends with a silence of
`Run.silence` seconds, and what came belongs to the step and to the connection that it came on.
`normalise` turns that into plain values that can be kept as JSON, `compare_runs` compares two of them.
"""

import contextlib
import difflib
import json
import re
import socket
import struct
import time
import traceback
import zlib

from . import rawamqp as amqp
from .rawamqp import UINT32, Described, Symbol, ULong, composite, fields_of, frame, message, message_sections

UINT32_MAX = 0xFFFFFFFF
DECODING_ERRORS = (IndexError, KeyError, ValueError, TypeError, AttributeError, struct.error)

ACCEPTED = Described(ULong(0x24), [])
REJECTED = Described(ULong(0x25), [])
RELEASED = Described(ULong(0x26), [])


def modified(failed=None, undeliverable=None, annotations=None):
    """The outcome modified."""
    return Described(ULong(0x27), [failed, undeliverable, annotations])


def rejected(condition, description):
    """The outcome rejected with an error in it."""
    return Described(ULong(0x25), [composite("error", condition=condition, description=description)])


# -------------------------------------------------------------------------------------------- connections


class Connection:
    """A connection whose every frame is made by the scenario.

    Args:
        run: what gets the frames that come.
        name: what the frames are kept under.
        handshake: with False only the socket is opened; else PLAIN as guest and open are done, too.
        open_fields: more fields for open.
    """

    def __init__(
        self,
        run,
        name,
        *,
        handshake=True,
        hostname="127.0.0.1",
        max_frame_size=65536,
        channel_max=63,
        idle_time_out=None,
        **open_fields,
    ):
        self.run = run
        self.name = name
        self.buffer = bytearray()
        self.dead = False
        self.close_seen = False
        self.heartbeats = 0
        self.frames = []
        self.parts = {}
        self.first_transfer_id = 0
        self.initial_count = 0
        self.socket = run.broker.connect()
        run.connections.append(self)
        if not handshake:
            return
        self.send_octets(b"AMQP\x03\x01\x00\x00")
        self.take(2)
        self.sasl_init("PLAIN", b"\0guest\0guest")
        self.take(1)
        self.send_octets(b"AMQP\x00\x01\x00\x00")
        self.send(
            0,
            "open",
            container_id="c-" + name,
            hostname=hostname,
            max_frame_size=max_frame_size,
            channel_max=channel_max,
            idle_time_out=idle_time_out,
            **open_fields,
        )
        self.take(2)

    # sending

    def send_octets(self, octets):
        """Send octets as they are; that the broker has closed is seen when reading."""
        self.run.fresh = False
        try:
            self.socket.settimeout(10)
            self.socket.sendall(octets)
            return True
        except OSError:
            return False

    def send(self, channel, name, /, payload=b"", **fields):
        """Send a performative with a payload."""
        return self.send_octets(frame(channel, composite(name, **fields), payload))

    def sasl_init(self, mechanism, initial_response):
        """Send sasl-init."""
        body = composite("sasl-init", mechanism=mechanism, initial_response=initial_response)
        self.send_octets(frame(0, body, frame_type=1))

    # receiving: each of these returns a list of (name, fields, payload, channel)

    def _record(self, name, fields, channel=0, payload=b""):
        if name == "close":
            self.close_seen = True
        if name == "transfer":
            fields, payload = self._assemble(fields, channel, payload)
        self.run.record(self.name, channel, name, fields, payload)
        received = (name, fields, payload, channel)
        self.frames.append(received)
        return received

    def _assemble(self, fields, channel, payload):
        """Give the last transfer of a delivery in parts the whole message, and each part a field with its size."""
        key = (channel, fields.get("handle"))
        before = self.parts.pop(key, b"")
        if not before and not fields.get("more"):
            return fields, payload
        fields = {**fields, "payload": f"{len(payload)} octets"}
        if fields.get("more"):
            self.parts[key] = before + payload
            return fields, b""
        return fields, b"" if fields.get("aborted") else before + payload

    def _next_in_buffer(self):
        """Take one frame or protocol header out of the buffer; None if there is no whole one."""
        if len(self.buffer) < 8:
            return None
        if self.buffer[:4] == b"AMQP":
            header = bytes(self.buffer[4:8])
            del self.buffer[:8]
            return self._record("protocol-header", {"octets": header.hex()})
        size = UINT32.unpack_from(self.buffer)[0]
        if size < 8 or size > 1 << 27:
            octets = bytes(self.buffer[:40])
            self.buffer.clear()
            return self._record("no-frame", {"octets": octets.hex()})
        if len(self.buffer) < size:
            return None
        octets = bytes(self.buffer[:size])
        del self.buffer[:size]
        try:
            channel, body, payload = amqp.parse_frame(octets)
            if body is None:
                self.heartbeats += 1
                return ("heartbeat", {}, b"", channel)
            name, fields = fields_of(body)
        except DECODING_ERRORS:
            return self._record("undecodable", {"octets": octets[:40].hex()})
        return self._record(name, fields, channel, payload)

    def read(self, timeout):
        """Return one frame, or None if none comes in time."""
        now = self.run.broker.now
        end = now() + timeout
        while True:
            received = self._next_in_buffer()
            if received is not None or self.dead:
                return received
            self.socket.settimeout(max(0.001, end - now()))
            try:
                octets = self.socket.recv(1 << 20)
            except TimeoutError:
                if now() >= end:
                    return None
                continue
            except OSError:
                octets = b""
            self.buffer += octets
            if not octets:
                self.dead = True
                if not self.close_seen:
                    self._record("connection-closed", {})

    def take(self, count, timeout=4):
        """Read so many frames."""
        received = []
        while len(received) < count:
            one = self.read(timeout)
            if one is None:
                break
            received.append(one)
        return received

    def quiet(self, silence=None):
        """Read until nothing comes for a while."""
        received = []
        while True:
            one = self.read(self.run.silence if silence is None else silence)
            if one is None:
                return received
            received.append(one)

    def until(self, name, timeout=4):
        """Read until a frame of that name and return it, or None."""
        now = self.run.broker.now
        end = now() + timeout
        while now() < end:
            one = self.read(max(0.01, end - now()))
            if one is None or one[0] == name:
                return one
        return None

    def transfers(self):
        """How many transfers have come on this connection."""
        return sum(1 for one in self.frames if one[0] == "transfer")

    # sessions and links

    def begin(self, channel=0, *, incoming_window=2048, handle_max=255):
        """Begin a session and wait for the answer."""
        self.send(
            channel,
            "begin",
            next_outgoing_id=0,
            incoming_window=incoming_window,
            outgoing_window=65535,
            handle_max=handle_max,
        )
        answer = self.until("begin")
        self.first_transfer_id = answer[1].get("next-outgoing-id", 0) if answer else 0

    def end(self, channel=0):
        """End a session and wait for silence."""
        self.send(channel, "end")
        return self.quiet()

    def sender(self, address, *, handle=0, channel=0, name=None, snd_settle_mode=2, target=None, wait=True, **fields):
        """Attach a link to publish on."""
        self.send(
            channel,
            "attach",
            name=name or f"s{handle}-{self.name}",
            handle=handle,
            role=False,
            snd_settle_mode=snd_settle_mode,
            rcv_settle_mode=0,
            source=composite("source", address="me"),
            target=target or composite("target", address=address),
            initial_delivery_count=0,
            **fields,
        )
        return self.quiet() if wait else []

    def receiver(
        self,
        address,
        *,
        handle=0,
        channel=0,
        name=None,
        snd_settle_mode=2,
        rcv_settle_mode=0,
        filters=None,
        source=None,
        **fields,
    ):
        """Attach a link to consume on, without credit."""
        self.send(
            channel,
            "attach",
            name=name or f"r{handle}-{self.name}",
            handle=handle,
            role=True,
            snd_settle_mode=snd_settle_mode,
            rcv_settle_mode=rcv_settle_mode,
            source=source or composite("source", address=address, filter=filters),
            target=composite("target", address="me"),
            **fields,
        )
        received = self.quiet()
        self.initial_count = 0
        for one in received:
            if one[0] == "attach":
                self.initial_count = one[1].get("initial-delivery-count", 0)
        return received

    def detach(self, handle=0, *, closed=True, channel=0, error=None):
        """Detach a link and wait for silence."""
        self.send(channel, "detach", handle=handle, closed=closed, error=error)
        return self.quiet()

    def flow(
        self,
        credit=None,
        delivered=0,
        *,
        handle=0,
        channel=0,
        received=0,
        sent=0,
        window=2048,
        absolute=False,
        wait=True,
        **fields,
    ):
        """Send a flow for a link.

        Args:
            credit: link-credit.
            delivered: delivery-count, counted from the initial-delivery-count of the last receiver here
                (with absolute from 0); None leaves it out.
            handle: of the link.
            channel: of the session.
            received: next-incoming-id, counted from the begin of the broker.
            sent: next-outgoing-id.
            window: incoming-window.
            absolute: see delivered.
            wait: until there is silence.
            **fields: further fields, such as drain, echo and available.
        """
        if delivered is not None:
            delivered = (delivered + (0 if absolute else self.initial_count)) & UINT32_MAX
        self.send(
            channel,
            "flow",
            next_incoming_id=(self.first_transfer_id + received) & UINT32_MAX,
            incoming_window=window,
            next_outgoing_id=sent,
            outgoing_window=65535,
            handle=handle,
            delivery_count=delivered,
            link_credit=credit,
            **fields,
        )
        return self.quiet() if wait else []

    def session_flow(self, *, received=0, window=2048, sent=0, channel=0, echo=None):
        """Send a flow for the session alone; the fields are as in `flow`."""
        self.send(
            channel,
            "flow",
            next_incoming_id=(self.first_transfer_id + received) & UINT32_MAX,
            incoming_window=window,
            next_outgoing_id=sent,
            outgoing_window=65535,
            echo=echo,
        )
        return self.quiet()

    def transfer(self, delivery_id, payload=None, *, handle=0, channel=0, settled=False, more=None, wait=False):
        """Send a message in one transfer, or its first part; without a payload the body is the delivery-id."""
        self.send(
            channel,
            "transfer",
            payload=message(b"%d" % delivery_id) if payload is None else payload,
            handle=handle,
            delivery_id=delivery_id,
            delivery_tag=b"t%d" % delivery_id,
            message_format=0,
            settled=settled,
            more=more,
        )
        return self.quiet() if wait else []

    def disposition(self, first, last=None, state=ACCEPTED, *, settled=True, role=True):
        """Send a disposition and wait for silence."""
        self.send(0, "disposition", role=role, first=first, last=last, settled=settled, state=state)
        return self.quiet()

    def cut(self):
        """Close the socket without a word."""
        self.socket.close()
        self.dead = True

    def close(self):
        """Close in an orderly way, if there is still somebody there."""
        if not self.dead:
            self.send(0, "close")
            self.take(1, 2)
            self.quiet(0.1)
        self.cut()


def delivery_ids(received):
    """The delivery-ids of the transfers among what came."""
    return [fields["delivery-id"] for name, fields, _, _ in received if name == "transfer" and "delivery-id" in fields]


# --------------------------------------------------------------------------------------------------- runs

SCENARIOS = {}


def scenario(function):
    """Register a scenario under the name of its function, which gets a `Run`."""
    SCENARIOS[function.__name__] = function
    return function


class AtPort:
    """The broker at a port of this machine, and the time of this machine."""

    def __init__(self, port):
        self._port = port

    def connect(self):
        """A socket that is connected to it."""
        connected = socket.create_connection(("127.0.0.1", self._port), timeout=10)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connected

    def now(self):
        """Seconds since some moment."""
        return time.monotonic()

    def wait(self, seconds):
        """Let time pass."""
        time.sleep(seconds)


class Run:
    """One scenario against one broker.

    Args:
        broker: an `AtPort`, or what else can `connect` and has a `now` and a `wait`.
        silence: see below.

    Attributes:
        steps: a list of (name, frames by connection); a frame is (channel, name, fields, payload).
        silence: how long nothing must come until a step is over.
        fresh: whether nothing has been sent yet in the present step.
    """

    def __init__(self, broker, silence=0.25):
        self.broker = broker
        self.silence = silence
        self.steps = []
        self.connections = []
        self.fresh = False
        self.muted = False
        self.failure = None
        self._declared = []
        self._management = None
        self._requests = 0

    def connection(self, name="A", **settings):
        """Open a connection, in a step of its own if something has been done in the present one."""
        if not self.fresh:
            self.step(f"{name} connects")
        return Connection(self, name, **settings)

    def step(self, name):
        """Begin a step. What has already come on any connection belongs to the one before."""
        for connection in self.connections:
            if not connection.dead and connection is not self._management:
                connection.quiet(0.001)
        names = [step for step, _ in self.steps]
        number = 2
        unique = name
        while unique in names:
            unique = f"{name} ({number})"
            number += 1
        self.steps.append((unique, {}))
        self.fresh = True

    def record(self, connection, channel, name, fields, payload=b""):
        """Keep a frame in the step that is going on."""
        if not self.muted:
            if not self.steps:
                self.step("start")
            self.steps[-1][1].setdefault(connection, []).append((channel, name, fields, payload))

    def note(self, name, value):
        """Keep a value that is no frame, such as the number of messages in a queue."""
        self.record("note", 0, name, {"value": value})

    # what is done aside, over connections of its own

    def _open_management(self):
        """A connection with the pair of links to /management."""
        connection = Connection(self, "management")
        connection.begin()
        fields = {
            "name": "management",
            "snd_settle_mode": 1,
            "rcv_settle_mode": 0,
            "source": composite("source", address="/management"),
            "target": composite("target", address="/management"),
            "properties": {Symbol("paired"): True},
        }
        connection.send(0, "attach", handle=0, role=False, initial_delivery_count=0, **fields)
        connection.send(0, "attach", handle=1, role=True, **fields)
        for _, attach, _, _ in connection.quiet(0.3):
            if attach.get("handle") == 1 and "role" in attach:
                connection.initial_count = attach.get("initial-delivery-count", 0)
        self._management = connection
        self._requests = 0

    def request(self, method, to, body=None, *, log=False):
        """Ask /management something; the sections of the answer, or None if none comes.

        With log the frames that come are kept, under the connection name management.
        """
        was_muted = self.muted
        self.muted = True
        try:
            if self._management is None or self._management.dead:
                self._open_management()
            self.muted = was_muted or not log
            connection = self._management
            number = self._requests
            self._requests += 1
            connection.flow(10, number, handle=1, received=number, sent=number, wait=False)
            request = message(properties=[str(number), None, to, method, "$me"], value=(body,))
            connection.transfer(number, request, settled=True)
            answer = connection.until("transfer", 5)
            if log:
                connection.quiet()
            return message_sections(answer[2]) if answer else None
        finally:
            self.muted = was_muted

    def declare(self, name, queue_type="classic", **arguments):
        """Delete a queue, declare it anew, and return its address."""
        self.request("DELETE", "/queues/" + name)
        self._declared.append(name)
        body = {
            "durable": True,
            "exclusive": False,
            "auto_delete": False,
            "arguments": {"x-queue-type": queue_type, **arguments},
        }
        answer = dict(self.request("PUT", "/queues/" + name, body) or [])
        if answer.get("properties", [None] * 4)[3] not in ("200", "201"):
            self.note("declare failed: " + name, str(answer))
        return "/queues/" + name

    def fill(self, name, count, body=None, **sections):
        """Publish messages to a queue over a connection of its own and wait until they are accepted.

        Without a body it is the number of the message; sections are as in rawamqp.message.
        """
        was_muted = self.muted
        self.muted = True
        try:
            connection = Connection(self, "fill")
            connection.begin()
            connection.sender("/queues/" + name, wait=False)
            sent = settled = allowed = 0
            end = self.broker.now() + 20
            while settled < count and self.broker.now() < end:
                while sent < min(allowed, count):
                    connection.transfer(sent, message(b"%d" % sent if body is None else body, **sections))
                    sent += 1
                received = connection.read(4)
                if received is None:
                    break
                frame_name, fields = received[:2]
                if frame_name == "flow" and "link-credit" in fields:
                    window_end = fields.get("next-incoming-id", 0) + fields["incoming-window"]
                    allowed = min(fields["delivery-count"] + fields["link-credit"], window_end)
                if frame_name == "disposition":
                    settled += fields.get("last", fields["first"]) - fields["first"] + 1
            connection.close()
        finally:
            self.muted = was_muted

    def queue_info(self, name):
        """What /management says of a queue: its type and how many messages and consumers it has."""
        answer = dict(self.request("GET", "/queues/" + name) or [])
        info = answer.get("amqp-value") or {}
        return {key: info.get(key) for key in ("message_count", "consumer_count", "type")}

    def finish(self):
        """Close what is still open and delete the queues that were declared."""
        self.muted = True
        for connection in self.connections:
            connection.close()
        with contextlib.suppress(OSError):
            for name in self._declared:
                self.request("DELETE", "/queues/" + name)
            if self._management is not None:
                self._management.close()


def run_scenario(name, broker, silence=0.25):
    """Run a scenario: a `Run`, with the traceback in failure if it could not go through."""
    run = Run(broker, silence)
    try:
        SCENARIOS[name](run)
    except (OSError, *DECODING_ERRORS) as error:  # what did not come is missed; the other scenarios go on
        run.note("the scenario could not go on", type(error).__name__)
        run.failure = traceback.format_exc()
    finally:
        run.step("end of the scenario")  # what came late belongs to the last step
        run.steps.pop()
        run.finish()
    return run


# ---------------------------------------------------------------------------------------------- normalising

GENERATED = [
    (re.compile(r"amq\.rabbitmq\.reply-to\.[\w%.=-]+"), "amq.rabbitmq.reply-to.GENERATED"),
    (re.compile(r"amq\.gen-[\w-]+"), "amq.gen-GENERATED"),
    (re.compile(r"<\d+\.\d+\.\d+>"), "<PID>"),
    (re.compile(r"^[\w-]+@[\w.-]+$"), "NODE"),
]
A_DAY = 86_400_000


def plain(value):
    """A decoded value as JSON can hold it, with times of today and generated names replaced."""
    if isinstance(value, Described):
        return _plain_described(value)
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, bytes):
        if len(value) > 60:
            return f"{len(value)} octets, CRC {zlib.crc32(value):08x}"
        return "".join(chr(octet) if 32 <= octet < 127 and octet != 92 else f"\\x{octet:02x}" for octet in value)
    if isinstance(value, amqp.Timestamp) and abs(value - time.time() * 1000) < A_DAY:
        return "NOW"
    if isinstance(value, str):
        for pattern, replacement in GENERATED:
            value = pattern.sub(replacement, value)
        return str(value)
    return value


def _plain_described(value):
    name = amqp.NAMES.get(value.descriptor)
    if name in amqp.FIELDS and isinstance(value.value, list):
        fields = fields_of(value)[1]
        return {"type": name, **{field: plain(item) for field, item in fields.items()}}
    return {"type": name or str(value.descriptor), "value": plain(value.value)}


def _plain_message(payload):
    """The sections of a message by name; sections that come twice are listed."""
    found = {}
    for name, value in message_sections(payload):
        if name in amqp.FIELDS and isinstance(value, list):
            value = {field: item for field, item in zip(amqp.FIELDS[name], value, strict=False) if item is not None}
        found.setdefault(name, []).append(plain(value))
    plain_message = {name: values[0] if len(values) == 1 else values for name, values in found.items()}
    if "http:response" in plain_message.get("application-properties", {}) and isinstance(
        plain_message.get("amqp-value"), str
    ):
        plain_message["error text"] = plain_message.pop("amqp-value")
    return plain_message


def _plain_open(fields):
    """An open frame without what is only about the machine that the broker runs on."""
    fields.pop("container-id", None)
    properties = fields.pop("properties", {})
    fields["property-names"] = sorted(properties)
    fields["product"] = properties.get("product")
    fields["version"] = properties.get("version")
    return fields


def _spans(ids):
    """Numbers as text, such as 0-3, 5."""
    parts = []
    for number in sorted(ids):
        if parts and number == parts[-1][1] + 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in parts)


def normalise_frames(frames):
    """The frames of one step on one connection as a list of {"frame", "channel", "fields"}.

    A broker may settle deliveries one by one or many in one disposition. So the dispositions are not kept
    as frames, but as one entry `outcomes` for each channel and outcome, after the frames, whose field
    `deliveries` says which ones it was for.
    """
    normal = []
    outcomes = {}
    for channel, name, fields, payload in frames:
        fields = {field: plain(value) for field, value in fields.items()}
        if name == "disposition":
            first = fields.pop("first")
            last = fields.pop("last", first)
            key = (channel, str({path: leaf for path, leaf in flatten(fields).items() if not is_text(path)}))
            ids = outcomes.setdefault(key, (channel, fields, []))[2]
            ids.extend(range(first, min(last, first + 100_000) + 1))
            continue
        if name == "open":
            fields = _plain_open(fields)
        if name == "sasl-mechanisms" and isinstance(fields.get("mechanisms"), list):
            fields["mechanisms"].sort()
        if payload:
            fields["message"] = _plain_message(payload)
        normal.append({"frame": name, "channel": channel, "fields": fields})
    for channel, fields, ids in sorted(outcomes.values(), key=lambda entry: (entry[0], sorted(entry[2]))):
        normal.append({"frame": "outcomes", "channel": channel, "fields": {"deliveries": _spans(ids), **fields}})
    return normal


def normalise(run):
    """A whole run as JSON would give it back: a list of {"step", "connections"}."""
    steps = [
        {"step": name, "connections": {key: normalise_frames(frames) for key, frames in sorted(connections.items())}}
        for name, connections in run.steps
    ]
    return json.loads(json.dumps(steps))


# ------------------------------------------------------------------------------------------------ comparing

# Compared with --full only: what depends on settings, and details that clients hardly rely on.
FULL_ONLY = (
    ("open", "idle-time-out"),
    ("open", "property-names"),
    ("open", "product"),
    ("open", "version"),
    ("sasl-mechanisms", "mechanisms"),
    ("transfer", "delivery-tag"),
    ("transfer", "payload"),
    ("transfer", "message.header"),
    ("transfer", "message.message-annotations.x-acquired-count"),
    ("transfer", "message.message-annotations.x-delivery-count"),
)


def only_in_full(frame_name, path):
    """Whether a field of a frame is compared with --full only."""
    return any(frame_name == name and (path == field or path.startswith(field + ".")) for name, field in FULL_ONLY)


def is_text(path):
    """Whether a field is text for people, which is shown with --full but never compared."""
    return path.endswith(("error.description", "error text"))


def flatten(value, path=""):
    """The leaves of nested maps by path; lists of maps are gone into, other lists are leaves."""
    if isinstance(value, list) and any(isinstance(item, dict) for item in value):
        value = {f"[{index}]": item for index, item in enumerate(value)}
    if not isinstance(value, dict) or (not value and path):
        return {path: value}
    leaves = {}
    for key, item in value.items():
        leaves.update(flatten(item, f"{path}.{key}" if path else key))
    return leaves


def leaves_of(entry):
    """All that is compared of a frame, by path."""
    return {"channel": entry["channel"], **flatten(entry["fields"])}


class Difference:
    """One difference between what is recorded and what came.

    Attributes:
        step, connection: where.
        what: the frame and the field, such as `flow.link-credit`, or `frames` if not the same frames came.
        words: a sentence.
    """

    def __init__(self, step, connection, what, words):
        self.step = step
        self.connection = connection
        self.what = what
        self.words = words

    def key(self, scenario):
        """How a file of known differences names it."""
        return f"{scenario} :: {self.step} :: {self.connection} :: {self.what}"


def _show(value):
    return json.dumps(value, ensure_ascii=False)


def _say(before, after):
    if after is ABSENT:
        return f"is absent, recorded {_show(before)}"
    if before is ABSENT:
        return f"is {_show(after)}, recorded without it"
    return f"is {_show(after)}, recorded {_show(before)}"


ABSENT = object()


def _brief(entry, full, length=300):
    """A frame in one line."""
    leaves = [
        f"{path}={_show(value)}"
        for path, value in flatten(entry["fields"]).items()
        if full or not (only_in_full(entry["frame"], path) or is_text(path))
    ]
    text = f"{entry['frame']}({', '.join(leaves)})"
    return text if len(text) <= length else text[:length] + " ..."


def _identity(entry, full):
    """What makes a frame equal to another."""
    leaves = leaves_of(entry).items()
    compared = (pair for pair in leaves if not is_text(pair[0]) and (full or not only_in_full(entry["frame"], pair[0])))
    return entry["frame"] + json.dumps(sorted(compared), sort_keys=True)


def _unmatched(before, after, full):
    """Lines about the frames of two lists that have no equal in the other, at most three of each in a row."""
    identities = [[_identity(entry, full) for entry in entries] for entries in (before, after)]
    matcher = difflib.SequenceMatcher(None, *identities, autojunk=False)
    for operation, start, stop, other_start, other_stop in matcher.get_opcodes():
        if operation != "equal":
            yield from (f"recorded only: {_brief(entry, full)}" for entry in before[start:stop][:3])
            yield from (f"came only:     {_brief(entry, full)}" for entry in after[other_start:other_stop][:3])


def differing_paths(left, right):
    """The paths at which two frames of one name differ, with both values."""
    before = leaves_of(left)
    after = leaves_of(right)
    for path in sorted({*before, *after}):
        old = before.get(path, ABSENT)
        new = after.get(path, ABSENT)
        if old == new and type(old) is type(new):
            continue
        empty_beside_filled = {} in (old, new) and any(other.startswith(path + ".") for other in {*before, *after})
        if not empty_beside_filled:
            yield path, old, new


def counted(names):
    """Names of frames in a row, with how often each comes."""
    runs = []
    for name in names:
        if runs and runs[-1][0] == name:
            runs[-1][1] += 1
        else:
            runs.append([name, 1])
    return ", ".join(name if count == 1 else f"{count} x {name}" for name, count in runs) or "nothing"


def _compare_frames(step, connection, before, after, full):
    """Compare the frames of one step on one connection; yield differences, and notes on texts with --full."""
    names_before = [entry["frame"] for entry in before]
    names_after = [entry["frame"] for entry in after]
    if names_before != names_after:
        words = [f"came {counted(names_after)}; recorded {counted(names_before)}", *_unmatched(before, after, full)]
        yield Difference(step, connection, "frames", "\n        ".join(words))
        return
    found = {}
    for number, (left, right) in enumerate(zip(before, after, strict=True), 1):
        for path, old, new in differing_paths(left, right):
            if path in left.get("varies", []) or (not full and (is_text(path) or only_in_full(left["frame"], path))):
                continue
            found.setdefault(f"{left['frame']}.{path}", []).append((number, old, new))
    for what, places in found.items():
        number, old, new = places[0]
        words = f"{what} {_say(old, new)}"
        if len(before) > 1:
            words += f" (frame {number}"
            words += f", and {len(places) - 1} more of the {len(before)})" if len(places) > 1 else f" of {len(before)})"
        yield Difference(step, connection, what, words)


def compare_runs(recorded, now, full=False):
    """Compare a recorded scenario with a normalised run.

    Steps and connections that are recorded as not deterministic, and fields that are recorded as varying,
    are not compared.

    Returns:
        The differences, and the notes: differing texts for people, with full only.
    """
    differences = []
    after = {step["step"]: step["connections"] for step in now}
    for step in recorded["steps"]:
        name = step["step"]
        if name not in after:
            differences.append(Difference(name, "-", "frames", "the scenario did not come to this step"))
            continue
        for connection in sorted({*step["connections"], *after[name]}):
            entry = step["connections"].get(connection, {"frames": []})
            if entry.get("deterministic", True):
                came = after[name].get(connection, [])
                differences += _compare_frames(name, connection, entry["frames"], came, full)
    notes = [difference for difference in differences if is_text(difference.what)]
    return [difference for difference in differences if not is_text(difference.what)], notes
