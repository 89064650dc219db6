"""Generated values, controls, commands and frames, made from the field tables of the codec."""

from functools import cache
from uuid import UUID

from hypothesis import strategies as st

from workbench.amqp010 import structs as s
from workbench.amqp010.commands import MessageTransfer
from workbench.amqp010.composite import COMMANDS, CONTROLS, STRUCTS, Command
from workbench.amqp010.frame import Headers, control_frame, frames_of
from workbench.amqp010.values import SequenceSet


def _numbers(bits):
    return st.integers(0, 2**bits - 1) | st.sampled_from([0, 1, 255 % 2**bits, 2**bits - 1])


texts = st.text(st.characters(codec="utf-8"), max_size=9) | st.sampled_from(["", "é" * 127])
octets = st.binary(max_size=9) | st.just(bytes(255))
pairs = st.tuples(_numbers(32), _numbers(32))
scalars = st.one_of(
    st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), texts, octets,
    st.none(), st.uuids(),
)  # fmt: skip
values = st.recursive(
    scalars,
    lambda one: st.lists(one, max_size=3) | st.dictionaries(texts, one, max_size=3),
    max_leaves=6,
)

FIELDS = {
    "bit": st.booleans(),
    "uint8": _numbers(8),
    "uint16": _numbers(16),
    "uint32": _numbers(32),
    "uint64": _numbers(64),
    "sequence-no": _numbers(32),
    "datetime": _numbers(64),
    "str8": texts,
    "str16": texts,
    "vbin16": octets,
    "vbin32": octets,
    "uuid": st.uuids() | st.just(UUID(int=0)),
    "sequence-set": st.lists(pairs, max_size=3).map(lambda found: SequenceSet(tuple(found))),
    "byte-ranges": st.lists(st.tuples(_numbers(64), _numbers(64)), max_size=2).map(tuple),
    "map": st.dictionaries(texts, values, max_size=3),
    "array": st.lists(texts, max_size=3).map(tuple),
    "str16-array": st.lists(texts, max_size=3).map(tuple),
}


@cache
def composites(kind):
    """Values of a class, each field absent or present."""
    arguments = {
        name: FIELDS[type_] if type_ == "bit" else st.none() | FIELDS[type_]
        for name, type_ in kind.FIELDS
    }
    if issubclass(kind, Command):
        arguments["sync"] = st.booleans()
    return st.builds(kind, **arguments)


KINDS = [*CONTROLS.values(), *COMMANDS.values()]
FIELDS["reply-to"] = composites(s.ReplyTo)
structs = st.sampled_from(list(STRUCTS.values())).flatmap(composites)
FIELDS["struct32"] = structs
controls = st.sampled_from(list(CONTROLS.values())).flatmap(composites)
commands = st.sampled_from(list(COMMANDS.values())).flatmap(composites)
headers = st.lists(structs, max_size=3).map(lambda found: Headers(tuple(found)))


@st.composite
def command_frames(draw, channel=None, most=200):
    """The frames of a command, perhaps with a message, cut small."""
    return list(
        frames_of(
            draw(st.integers(0, 65535)) if channel is None else channel,
            draw(commands),
            draw(st.none() | headers),
            draw(st.none() | st.binary(max_size=400)),
            max_frame_size=draw(st.integers(60, most)),
        )
    )


FULL = {
    "bit": True, "uint8": 1, "uint16": 7, "uint32": 7, "uint64": 7, "sequence-no": 7,
    "datetime": 7, "str8": "text", "str16": "text", "vbin16": b"octets", "vbin32": b"octets",
    "sequence-set": SequenceSet(((1, 4), (9, 9))), "array": ("a", "b"),
    "map": {"i": 1, "s": "x", "b": True, "n": None, "m": {"k": 2.5}, "l": [1, "x"], "o": b"q"},
    "str16-array": ("a", "b"), "struct32": s.QueueQueryResult("q", message_count=3),
    "uuid": UUID(int=5), "reply-to": s.ReplyTo("e", "k"),
}  # fmt: skip


def filled(kind, without=()):
    """A value of a class with every field, but these."""
    return kind(**{name: FULL[type_] for name, type_ in kind.FIELDS if name not in without})


def every_frame():
    """Frames of every control and command, empty and filled, and of a message over several."""
    frames = [control_frame(1, one) for kind in CONTROLS.values() for one in (kind(), filled(kind))]
    for kind in COMMANDS.values():
        frames += [*frames_of(1, kind()), *frames_of(1, filled(kind))]
    properties = Headers((filled(s.DeliveryProperties), filled(s.MessageProperties)))
    frames += frames_of(1, MessageTransfer("q"), properties, bytes(9000), max_frame_size=4096)
    frames += frames_of(1, MessageTransfer("q"), properties, max_frame_size=60)
    return frames
