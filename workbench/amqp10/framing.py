"""Octets to frames, as they arrive [2.2, 2.3]: the incremental reader.

What a frame is and how one is written is in `frame`.
"""

from workbench.amqp10.errors import DecodeError, ErrorCondition, LocalProtocolError
from workbench.amqp10.frame import (
    FRAME_HEADER_SIZE,
    LARGEST_FRAME_SIZE,
    MAGIC,
    MIN_MAX_FRAME_SIZE,
    PROTOCOL_HEADER_SIZE,
    SASL_PROTOCOL,
    TLS_PROTOCOL,
    Frame,
    ProtocolHeader,
    RawItem,
    WireItem,
    check_frame_header,
    decode_checked,
    framing_error,
    unpack_frame_header,
)
from workbench.amqp10.performatives import AMQP_FRAME, SASL_FRAME, Open, Undecodable
from workbench.stream.cutter import StreamCutter

__all__ = ["FrameReader"]

_ONLY = ((AMQP_FRAME,), (SASL_FRAME,))
ONLY_AMQP = _ONLY[AMQP_FRAME]

TLS_HANDSHAKE = b"\x16\x03"
"""The first octets of a client that speaks TLS where nobody does [RFC 8446, 5.1]."""


class FrameReader(StreamCutter[RawItem]):
    """Cuts a stream of octets, arriving in any pieces, into frames and protocol headers.

    Reads one direction of a connection. A protocol header stands at the beginning and, after a
    SASL header, once more behind the SASL frames. Anywhere else the octets `AMQP` would be the
    SIZE of a frame of a gigabyte, and are refused as one. Between calls no more than
    `max_frame_size` octets are kept.

    Args:
        max_frame_size: the largest frame accepted, in octets, at least 512.
        first_max_frame_size: the same up to the peer's open and with it, however the octets arrive;
            None: no other.
        mid_stream: the stream may begin with a frame, its beginning not having been seen.
        offset: what the first octet counts as in offsets.
        keeps_undecodable: an AMQP frame whose body cannot be decoded is given as one that carries
            `Undecodable`, and reading goes on behind it. Otherwise it ends the stream, as do a
            SASL frame, whose octets may be a secret, and whatever is no frame.

    Attributes:
        max_frame_size: the largest frame accepted now.
    """

    def __init__(
        self,
        max_frame_size: int = MIN_MAX_FRAME_SIZE,
        *,
        first_max_frame_size: int | None = None,
        mid_stream: bool = False,
        offset: int = 0,
        keeps_undecodable: bool = False,
    ) -> None:
        super().__init__(offset)
        first = max_frame_size if first_max_frame_size is None else first_max_frame_size
        self.max_frame_size = _limit(first)
        self._opened_max = _limit(max_frame_size)
        self._keeps_undecodable = keeps_undecodable
        # What may come next: a protocol header, and frames of these types.
        self._header_allowed = True
        self._types: tuple[int, ...] = (AMQP_FRAME, SASL_FRAME) if mid_stream else ()
        self._foreign: ProtocolHeader | None = None  # a header whose protocol is not read here

    def _cut(self, data: bytes, items: list[RawItem]) -> int:
        """Appends the items of `data`; returns where an incomplete one begins."""
        at, end = 0, len(data)
        item: WireItem
        while end - at >= FRAME_HEADER_SIZE:
            size, doff, frame_type, channel = unpack_frame_header(data, at)
            if self._header_allowed and data[at : at + 4] == MAGIC:
                size = PROTOCOL_HEADER_SIZE
                item = self._read_header(data[at : at + size])
            else:
                if not 8 <= size <= self.max_frame_size or frame_type not in self._types:
                    self._refuse(data, at, size, doff, frame_type)
                if end - at < size:
                    self._needed = size
                    return at
                try:
                    item = decode_checked(data, at, at + size, doff, frame_type, channel)
                except DecodeError as error:
                    body = data[at + 4 * doff : at + size]
                    item = self._kept(channel, frame_type, body, error.moved(self.offset - at))
                if type(item.performative) is Open:
                    self.max_frame_size = self._opened_max
                if self._types is not ONLY_AMQP:
                    self._types = _ONLY[frame_type]
                    self._header_allowed = frame_type == SASL_FRAME
            items.append(RawItem(self.offset, data[at : at + size], item))
            at += size
            self.offset += size
        if not self._types and not MAGIC.startswith(data[at : at + 4]):
            raise self._no_header(data[at:])
        self._needed = FRAME_HEADER_SIZE
        return at

    def _kept(self, channel: int, frame_type: int, body: bytes, error: DecodeError) -> Frame:
        """The frame for a body that cannot be decoded, if such frames are kept."""
        framing = error.condition is ErrorCondition.FRAMING_ERROR
        if framing or frame_type == SASL_FRAME or not self._keeps_undecodable:
            raise error from None
        return Frame(channel, Undecodable(body, error.condition, error.message))

    def _read_header(self, raw: bytes) -> ProtocolHeader:
        header = ProtocolHeader(*raw[4:])
        self._header_allowed = False
        if header.supported:
            is_sasl = header.protocol_id == SASL_PROTOCOL
            self._types = _ONLY[SASL_FRAME if is_sasl else AMQP_FRAME]
        else:
            self._types = ()
            self._foreign = header
        return header

    def _refuse(self, data: bytes, at: int, size: int, doff: int, frame_type: int) -> None:
        """Raises the error for a frame that may not come here."""
        if not self._types:
            raise self._no_header(data[at:])
        if data[at : at + 4] == MAGIC:
            raise framing_error(
                "a protocol header cannot stand here: only at the beginning, and after a SASL "
                f"header behind the SASL frames. As a frame its SIZE would be {size}",
                self.offset,
            )
        check_frame_header(size, doff, frame_type, self.offset, self.max_frame_size)
        found, legal = ("AMQP", "SASL")[frame_type], ("AMQP", "SASL")[self._types[0]]
        raise framing_error(
            f"frame TYPE is {frame_type} ({found}); after the {legal} protocol header only "
            f"{legal} frames may come",
            self.offset + 5,
        )

    def _no_header(self, data: bytes) -> DecodeError:
        if self._foreign is not None:
            h = self._foreign
            what = (
                "TLS"
                if h.protocol_id == TLS_PROTOCOL
                else f"protocol {h.protocol_id} version {h.major}-{h.minor}-{h.revision}"
            )
            return framing_error(
                f"the protocol header announced {what}; what follows is not AMQP 1.0", self.offset
            )
        tls = " (TLS)" if data.startswith(TLS_HANDSHAKE) else ""
        return framing_error(
            f"the stream begins with {data[:8].hex(' ')}{tls}; legal is a protocol header: "
            "41 4d 51 50 (AMQP), 00 or 03 (SASL), 01 00 00",
            self.offset,
        )


def _limit(size: int) -> int:
    """The largest frame accepted where `size` is asked for.

    Raises:
        LocalProtocolError: it is below 512.
    """
    if size < MIN_MAX_FRAME_SIZE:
        raise LocalProtocolError(
            f"max-frame-size {size} is not legal; the least is {MIN_MAX_FRAME_SIZE} [2.8.19]"
        )
    return min(size, LARGEST_FRAME_SIZE)
