"""How much a live listener takes on: every limit in one place, with what happens beyond it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds of one listener. All are checked before anything is allocated for what exceeds them.

    Attributes:
        connections: sockets open at once; one more is closed at once.
        handshake_s: seconds until both opens are exchanged; a slower client is closed.
        idle_s: a client that is silent for twice as long is closed; it is told of it in the open.
            0 waits for ever. None: what the preset says, and a minute where it says nothing.
        close_s: seconds for a client to answer a close and to read what is still to be read; then
            the socket is cut. One of AMQP 0-9-1 has no longer than its heartbeat.
        farewell_s: seconds for frames that still wait, and for the answers to a close, when the
            listener stops.
        held_frames: frames that wait at a closed gate, per direction; beyond it the socket is not
            read, so TCP holds the client, and the broker hands out no further message to it.
        held_octets: the same in octets.
        write_octets: octets waiting to be written to one client; beyond it the broker sends that
            client no further message until most of it is gone. Beyond four times that its socket
            is not read either, so that it cannot ask for ever for what it does not read.
        read_octets: octets read from one client before the others have their turn; a client that
            floods the broker costs the others no more than the work on so much.
        flush_octets: octets collected before they are handed to the socket within one turn.
    """

    connections: int = 1024
    handshake_s: float = 10.0
    idle_s: float | None = None
    close_s: float = 5.0
    farewell_s: float = 0.5
    held_frames: int = 10_000
    held_octets: int = 16_777_216
    write_octets: int = 262_144
    read_octets: int = 16_384
    flush_octets: int = 65_536
