"""The controls of classes connection and session [errata of Qpid, 2008]."""

from .composite import (
    Array,
    Bit,
    Commands,
    Control,
    Map,
    SequenceNo,
    Str8,
    Str16,
    Str16Array,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
    VBin16,
    VBin32,
    control,
)

__all__ = [
    "ConnectionClose",
    "ConnectionCloseOk",
    "ConnectionHeartbeat",
    "ConnectionOpen",
    "ConnectionOpenOk",
    "ConnectionRedirect",
    "ConnectionSecure",
    "ConnectionSecureOk",
    "ConnectionStart",
    "ConnectionStartOk",
    "ConnectionTune",
    "ConnectionTuneOk",
    "SessionAttach",
    "SessionAttached",
    "SessionCommandPoint",
    "SessionCompleted",
    "SessionConfirmed",
    "SessionDetach",
    "SessionDetached",
    "SessionExpected",
    "SessionFlush",
    "SessionGap",
    "SessionKnownCompleted",
    "SessionRequestTimeout",
    "SessionTimeout",
]


@control("connection.start", 0x0101)
class ConnectionStart(Control, frozen=True, gc=False):
    """The server says who it is and how a client may log in."""

    server_properties: Map = None
    mechanisms: Str16Array = None
    locales: Str16Array = None


@control("connection.start-ok", 0x0102)
class ConnectionStartOk(Control, frozen=True, gc=False):
    """The client chooses a mechanism."""

    client_properties: Map = None
    mechanism: Str8 = None
    response: VBin32 = None
    locale: Str8 = None


@control("connection.secure", 0x0103)
class ConnectionSecure(Control, frozen=True, gc=False):
    """The server's next step of SASL."""

    challenge: VBin32 = None


@control("connection.secure-ok", 0x0104)
class ConnectionSecureOk(Control, frozen=True, gc=False):
    """The client's next step of SASL."""

    response: VBin32 = None


@control("connection.tune", 0x0105)
class ConnectionTune(Control, frozen=True, gc=False):
    """The server's limits; heartbeats in seconds."""

    channel_max: UInt16 = None
    max_frame_size: UInt16 = None
    heartbeat_min: UInt16 = None
    heartbeat_max: UInt16 = None


@control("connection.tune-ok", 0x0106)
class ConnectionTuneOk(Control, frozen=True, gc=False):
    """What the client makes of the limits."""

    channel_max: UInt16 = None
    max_frame_size: UInt16 = None
    heartbeat: UInt16 = None


@control("connection.open", 0x0107)
class ConnectionOpen(Control, frozen=True, gc=False):
    """The client names the virtual host."""

    virtual_host: Str8 = None
    capabilities: Str16Array = None
    insist: Bit = False


@control("connection.open-ok", 0x0108)
class ConnectionOpenOk(Control, frozen=True, gc=False):
    """The connection is open."""

    known_hosts: Str16Array = None


@control("connection.redirect", 0x0109)
class ConnectionRedirect(Control, frozen=True, gc=False):
    """The client is to go elsewhere."""

    host: Str16 = None
    known_hosts: Str16Array = None


@control("connection.heartbeat", 0x010A)
class ConnectionHeartbeat(Control, frozen=True, gc=False):
    """Its sender lives."""


@control("connection.close", 0x010B)
class ConnectionClose(Control, frozen=True, gc=False):
    """The connection ends, and why."""

    reply_code: UInt16 = None
    reply_text: Str8 = None


@control("connection.close-ok", 0x010C)
class ConnectionCloseOk(Control, frozen=True, gc=False):
    """The end is known."""


@control("session.attach", 0x0201)
class SessionAttach(Control, frozen=True, gc=False):
    """Attaches a session to the channel."""

    name: VBin16 = None
    force: Bit = False


@control("session.attached", 0x0202)
class SessionAttached(Control, frozen=True, gc=False):
    """The session is attached."""

    name: VBin16 = None


@control("session.detach", 0x0203)
class SessionDetach(Control, frozen=True, gc=False):
    """Detaches the session from the channel."""

    name: VBin16 = None


@control("session.detached", 0x0204)
class SessionDetached(Control, frozen=True, gc=False):
    """The session is not attached, or not any more, and why."""

    name: VBin16 = None
    code: UInt8 = None


@control("session.request-timeout", 0x0205)
class SessionRequestTimeout(Control, frozen=True, gc=False):
    """Asks that the session be kept so long after a detach, in seconds."""

    timeout: UInt32 = None


@control("session.timeout", 0x0206)
class SessionTimeout(Control, frozen=True, gc=False):
    """How long the session is kept, in seconds."""

    timeout: UInt32 = None


@control("session.command-point", 0x0207)
class SessionCommandPoint(Control, frozen=True, gc=False):
    """The id of the next command that its sender sends."""

    command_id: SequenceNo = None
    command_offset: UInt64 = None


@control("session.expected", 0x0208)
class SessionExpected(Control, frozen=True, gc=False):
    """Commands that have not come."""

    commands: Commands = None
    fragments: Array = None


@control("session.confirmed", 0x0209)
class SessionConfirmed(Control, frozen=True, gc=False):
    """Commands that have come, and need not be kept to be sent again."""

    commands: Commands = None
    fragments: Array = None


@control("session.completed", 0x020A)
class SessionCompleted(Control, frozen=True, gc=False):
    """Commands that have been executed; `timely_reply` asks for known-completed."""

    commands: Commands = None
    timely_reply: Bit = False


@control("session.known-completed", 0x020B)
class SessionKnownCompleted(Control, frozen=True, gc=False):
    """Completions that have come and need not be told again."""

    commands: Commands = None


@control("session.flush", 0x020C)
class SessionFlush(Control, frozen=True, gc=False):
    """Asks for these controls now."""

    expected: Bit = False
    confirmed: Bit = False
    completed: Bit = False


@control("session.gap", 0x020D)
class SessionGap(Control, frozen=True, gc=False):
    """Commands that will never be sent."""

    commands: Commands = None
