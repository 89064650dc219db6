"""From a captured packet to its TCP segment: link layer, a tunnel if there is one, IP, TCP header.

Nothing is put together here: an IP fragment or a header cut by the snapshot length is named and
counted, and the octets it carried become a gap in the stream. The lengths of the IP header are
believed before those of the packet, because short Ethernet frames are padded.
"""

from __future__ import annotations

import ipaddress
import struct

from msgspec import Struct

from workbench.capture.pcap import Packet

__all__ = ["Segment", "endpoint_text", "segment_of"]

_ETHERNET, _COOKED, _COOKED_2, _NULL, _LOOP = 1, 113, 276, 0, 108
_RAW_IP = frozenset({12, 14, 101, 228, 229})
_IPV4, _IPV6 = 0x0800, 0x86DD
_VLAN_TAGS = frozenset({0x8100, 0x88A8, 0x9100})
_TCP, _UDP, _FRAGMENT, _GRE, _AUTHENTICATION = 6, 17, 44, 47, 51
_IP_IN_IP = frozenset({4, 41})
_VXLAN, _GENEVE = frozenset({4789, 8472}), 6081
_BRIDGED = 0x6558
_EXTENSIONS = frozenset({0, 43, 60, 135})

_TCP_HEADER = struct.Struct(">2s2sIIBBH").unpack_from
_IPV4_HEADER = struct.Struct(">BxHxxHxBxx4s4s").unpack_from
_U16 = struct.Struct(">H").unpack_from


class Segment(Struct, frozen=True, gc=False):
    """One TCP segment.

    Attributes:
        source: IP address octets followed by the port, 6 or 18 octets; also the key of the end.
        destination: the same of the other end.
        seq: sequence number of the first payload octet, or of the SYN.
        ack: acknowledgement number; meaningful when ``flags`` has ACK.
        flags: the low eight TCP flags.
        payload: the octets that the capture kept.
        missing: payload octets that were on the wire after ``payload`` and were not kept.
        window: what the end has room for, before it is scaled; 0 is 0 whatever the scale.
    """

    source: bytes
    destination: bytes
    seq: int
    ack: int
    flags: int
    payload: bytes
    missing: int
    window: int


def endpoint_text(endpoint: bytes) -> str:
    """``address:port`` of a segment's end; IPv6 in brackets."""
    address = ipaddress.ip_address(endpoint[:-2])
    port = int.from_bytes(endpoint[-2:], "big")
    return f"[{address}]:{port}" if address.version == 6 else f"{address}:{port}"


def segment_of(packet: Packet) -> Segment | str | None:
    """The TCP segment in a packet.

    Returns:
        The segment; or a short reason, fit for counting, why a packet that may concern a TCP
        connection could not be used; or None for traffic of another kind.
    """
    linktype, data = packet.linktype, packet.data
    wire = len(data) + packet.missing
    if linktype == _ETHERNET:
        return _ethernet(data, 0, wire, outer=True)
    if linktype in _RAW_IP:
        kind, start = 0, 0
    elif linktype == _COOKED:
        kind, start = (_U16(data, 14)[0] if len(data) >= 16 else -1), 16
    elif linktype == _COOKED_2:
        kind, start = (_U16(data, 0)[0] if len(data) >= 20 else -1), 20
    elif linktype in (_NULL, _LOOP):
        # Four octets of address family, in the capturing host's byte order; the IP version in
        # the first nibble after them says the same without the guess.
        kind, start = 0, 4
    else:
        return f"link type {linktype} is not supported"
    return _network(kind, data, start, wire, outer=True)


def _ethernet(data: bytes, at: int, wire: int, *, outer: bool) -> Segment | str | None:
    if len(data) < at + 14:
        return "cut inside the link header"
    return _network(_U16(data, at + 12)[0], data, at + 14, wire, outer=outer)


def _network(kind: int, data: bytes, at: int, wire: int, *, outer: bool) -> Segment | str | None:
    """The segment in what an EtherType announces; 0 leaves it to the IP version.

    `wire` is where the packet ended on the wire, be it behind `data`.
    """
    while kind in _VLAN_TAGS and len(data) >= at + 4:
        kind, at = _U16(data, at + 2)[0], at + 4
    if at >= len(data):
        return "cut inside the link header"
    if kind == 0:
        version = data[at] >> 4
        kind = _IPV4 if version == 4 else _IPV6 if version == 6 else -1
    if kind == _IPV4:
        return _ipv4(data, at, wire, outer=outer)
    if kind == _IPV6:
        return _ipv6(data, at, wire, outer=outer)
    return None


def _tunnelled(protocol: int, data: bytes, at: int, wire: int) -> Segment | str | None:
    """The segment in a packet within a packet, as the nodes of a cluster send them to each other.

    IP in IP [RFC 2003], GRE [RFC 2784, 2890], VXLAN [RFC 7348] and Geneve [RFC 8926]; a tunnel
    within a tunnel is passed over.
    """
    kind = 0
    if protocol == _GRE and len(data) >= at + 4:
        flags, kind = _U16(data, at)[0], _U16(data, at + 2)[0]
        # A checksum, a key and a sequence number each take four octets.
        at += 4 + 4 * (flags & 0xB000).bit_count()
    elif protocol == _UDP and len(data) >= at + 16:
        port = _U16(data, at + 2)[0]
        if port in _VXLAN:
            kind, at = _BRIDGED, at + 16
        elif port == _GENEVE:
            kind, at = _U16(data, at + 10)[0], at + 16 + (data[at + 8] & 0x3F) * 4
        else:
            return None
    elif protocol not in _IP_IN_IP:
        return None
    if kind == _BRIDGED:
        return _ethernet(data, at, wire, outer=False)
    return _network(kind, data, at, wire, outer=False)


def _ipv4(data: bytes, start: int, wire: int, *, outer: bool) -> Segment | str | None:
    if len(data) < start + 20:
        return "cut inside the IP header"
    first, total, fragment, protocol, source, destination = _IPV4_HEADER(data, start)
    header = (first & 0x0F) * 4
    fragment &= 0x3FFF
    if protocol != _TCP:
        # What follows the first fragment has no header of its own.
        later = fragment & 0x1FFF
        return _tunnelled(protocol, data, start + header, wire) if outer and not later else None
    if fragment:
        return "IPv4 fragment"
    # A length of 0 is left by network cards that cut the segment themselves (offload).
    total = total or wire - start
    if header < 20 or total < header:
        return "damaged IP header"
    return _tcp(data, start + header, start + total, source, destination)


def _ipv6(data: bytes, start: int, wire: int, *, outer: bool) -> Segment | str | None:
    if len(data) < start + 40:
        return "cut inside the IP header"
    kind, at = data[start + 6], start + 40
    end = at + (_U16(data, start + 4)[0] or wire - at)
    while kind != _TCP:
        if len(data) < at + 8:
            return "cut inside the IP header" if kind in _EXTENSIONS else None
        if kind in _EXTENSIONS:
            kind, at = data[at], at + 8 + data[at + 1] * 8
        elif kind == _AUTHENTICATION:
            kind, at = data[at], at + 8 + data[at + 1] * 4
        elif kind == _FRAGMENT:
            # A fragment header with offset 0 and no more to come carries the whole packet.
            if _U16(data, at + 2)[0] & 0xFFF9:
                return "IPv6 fragment" if data[at] == _TCP else None
            kind, at = data[at], at + 8
        else:
            return _tunnelled(kind, data, at, wire) if outer else None
    return _tcp(data, at, end, data[start + 8 : start + 24], data[start + 24 : start + 40])


def _tcp(data: bytes, at: int, end: int, source: bytes, destination: bytes) -> Segment | str:
    if len(data) < at + 20 or end < at + 20:
        return "cut inside the TCP header"
    sends, takes, seq, ack, offset, flags, window = _TCP_HEADER(data, at)
    header = (offset >> 4) * 4
    body = at + header
    if header < 20 or body > end:
        return "damaged TCP header"
    payload = data[body:end]
    left_out = end - body - len(payload)
    return Segment(source + sends, destination + takes, seq, ack, flags, payload, left_out, window)
