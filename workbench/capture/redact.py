"""Taking secrets out of frames so that a capture can be given away.

What SASL mechanisms exchange and the bodies of messages become zeros of the same length, in the
octets themselves, so every size and every field position stays true and every frame stays valid:

* `initial-response`, `challenge`, `response` and `additional-data` of the SASL frames;
* the body sections of a message: each becomes a `data` section of the same size;
* the whole payload where it is one part of a message of several transfers, or cannot be read as
  sections, or is not in AMQP's own message format.

Kept, and said in the report: container names, addresses, link names, properties and annotations.
"""

from __future__ import annotations

from workbench.amqp10.decoder import decode_value
from workbench.amqp10.errors import DecodeError
from workbench.amqp10.frame import Frame, WireItem, decode_frame
from workbench.amqp10.performatives import Transfer
from workbench.amqp10.spans import field_spans
from workbench.trace.rebuild import empty_body
from workbench.trace.secret_fields import SECRETS

__all__ = ["Redactor"]

_BODIES = frozenset({0x75, 0x76, 0x77})
_SECTIONS = frozenset(range(0x70, 0x79))


class Redactor:
    """Redacts the frames of one connection, in the order of the wire."""

    def __init__(self) -> None:
        self._open: set[tuple[bool, int, int]] = set()

    def frame(
        self, raw: bytes | None, item: WireItem, from_client: bool
    ) -> tuple[bytes | None, WireItem]:
        """The frame without its secrets.

        Args:
            raw: its octets; None if the capture has only a part of them.
            item: what they say.
            from_client: who sent it.

        Returns:
            Octets and frame of the same sizes; the arguments themselves if there is no secret.
        """
        if not isinstance(item, Frame) or item.performative is None:
            return raw, item
        performative = item.performative
        if type(performative) is Transfer:
            return self._transfer(raw, item, performative, from_client)
        if raw is not None and performative.FRAME_TYPE == 1:
            return _sasl(raw, item)
        return raw, item

    def _transfer(
        self, raw: bytes | None, item: Frame, transfer: Transfer, from_client: bool
    ) -> tuple[bytes | None, WireItem]:
        key = (from_client, item.channel, transfer.handle)
        part = key in self._open or bool(transfer.more)
        if transfer.more and not transfer.aborted:
            self._open.add(key)
        else:
            self._open.discard(key)
        if raw is None or not item.payload:
            return raw, item
        whole = not part and not transfer.message_format
        clean = _message(item.payload) if whole else None
        if clean is None:
            clean = bytes(len(item.payload))
        raw = raw[: len(raw) - len(clean)] + clean
        return raw, Frame(item.channel, transfer, clean)


def _sasl(raw: bytes, item: Frame) -> tuple[bytes, WireItem]:
    """Zeros where the binary fields of a SASL frame are."""
    clean = bytearray(raw)
    for span in field_spans(raw):
        name = span.path.rpartition(".")[2]
        secret = getattr(item.performative, name) if name in SECRETS else None
        if secret:
            clean[span.end - len(secret) : span.end] = bytes(len(secret))
    octets = bytes(clean)
    return octets, decode_frame(octets)


def _message(payload: bytes) -> bytes | None:
    """The message with empty bodies; None if these are not the sections of a whole message."""
    out: list[bytes] = []
    at, bodies = 0, 0
    while at < len(payload):
        if payload[at] != 0x00:
            return None
        try:
            code, _ = decode_value(payload, at + 1, len(payload))
            _, end = decode_value(payload, at, len(payload))
        except DecodeError:
            return None
        if code not in _SECTIONS:
            return None
        if code in _BODIES:
            bodies += 1
            out.append(empty_body(end - at))
        else:
            out.append(payload[at:end])
        at = end
    return b"".join(out) if bodies else None
