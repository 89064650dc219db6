"""How a queue is declared: RabbitMQ's x-arguments as a value.

`QueueArguments` has one field for each argument that changes what the queue does here. Which
argument belongs to which type of queue, and what its value may be, is as in
`rabbit_amqqueue.erl:check_declare_arguments` and the `capabilities` of each type.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

CLASSIC, QUORUM, STREAM = "classic", "quorum", "stream"
QUEUE_TYPES = (CLASSIC, QUORUM, STREAM)

DROP_HEAD, REJECT_PUBLISH, REJECT_PUBLISH_DLX = "drop-head", "reject-publish", "reject-publish-dlx"
OVERFLOWS = (DROP_HEAD, REJECT_PUBLISH, REJECT_PUBLISH_DLX)

MS_OF_UNIT = {"s": 1000, "m": 60_000, "h": 3_600_000, "D": 86_400_000}
MS_OF_UNIT |= {"M": 30 * MS_OF_UNIT["D"], "Y": 365 * MS_OF_UNIT["D"]}
_AGE = re.compile(r"([0-9]{1,18})([YMDhms])")

# RabbitMQ's `rabbit_misc:check_expiry`: ten years.
EXPIRY_LIMIT_MS = 315_360_000_000
MAX_PRIORITY = 255

# Known to RabbitMQ, about where and how messages are stored, or what is not done here: legal, and
# without effect. The type and the least, or the values, that RabbitMQ looks at come second.
STORAGE: dict[str, tuple[tuple[str, ...], int | tuple[object, ...] | None]] = {
    "x-queue-mode": ((CLASSIC,), None),
    "x-queue-version": ((CLASSIC,), (1, 2)),
    "x-queue-master-locator": ((CLASSIC,), None),
    "x-queue-leader-locator": (
        QUEUE_TYPES,
        ("client-local", "balanced", "random", "least-leaders", "min-masters"),
    ),
    "x-max-in-memory-length": ((QUORUM,), 0),
    "x-max-in-memory-bytes": ((QUORUM,), 0),
    "x-quorum-initial-group-size": ((QUORUM,), 1),
    "x-dead-letter-strategy": ((QUORUM,), ("at-most-once", "at-least-once")),
    "x-consumer-timeout": ((QUORUM,), 0),
    "x-consumer-disconnected-timeout": ((QUORUM,), 0),
    "x-delayed-retry-type": ((QUORUM,), None),
    "x-delayed-retry-min": ((QUORUM,), None),
    "x-delayed-retry-max": ((QUORUM,), None),
    "x-initial-cluster-size": ((STREAM,), 1),
    "x-stream-max-segment-size-bytes": ((STREAM,), 0),
    "x-stream-filter-size-bytes": ((STREAM,), 0),
}


class QueueArgumentError(ValueError):
    """A queue that cannot be declared so; the text names the argument and what is legal."""


def _argument(
    default: Any, x_name: str, kind: type, *, types: tuple[str, ...], doc: str, least: int = 0
) -> Any:
    """A field with RabbitMQ's name, the type of its value, and the queue types that take it."""
    metadata = {"x_name": x_name, "kind": kind, "types": types, "doc": doc, "least": least}
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueArguments:
    """What a queue is to do beyond keeping messages in order; None is "no such rule".

    Attributes:
        queue_type: `x-queue-type`.
        single_active_consumer: `x-single-active-consumer`.
        max_length: `x-max-length`, messages ready.
        max_length_bytes: `x-max-length-bytes`, octets ready; of a stream, octets in all.
        overflow: `x-overflow`: what goes when a limit is passed. `drop-head`: the oldest message;
            `reject-publish`: the one that comes; `reject-publish-dlx`: the same, dead-lettered.
        message_ttl_ms: `x-message-ttl`, ms that a message may wait.
        expires_ms: `x-expires`, ms without a consumer after which the queue is deleted.
        dead_letter_exchange: `x-dead-letter-exchange`, `""` being the default exchange.
        dead_letter_routing_key: `x-dead-letter-routing-key`; None keeps the message's own.
        delivery_limit: `x-delivery-limit`, deliveries that may fail.
        max_priority: `x-max-priority`: messages of a higher priority go first, up to this one.
        max_age_ms: `x-max-age`, ms after which a stream may drop a message.

    Raises:
        QueueArgumentError: the values are not possible, or not together.
    """

    queue_type: str = _argument(
        CLASSIC, "x-queue-type", str, types=QUEUE_TYPES, doc="classic, quorum or stream"
    )
    single_active_consumer: bool = _argument(
        False,
        "x-single-active-consumer",
        bool,
        types=(CLASSIC, QUORUM),
        doc="one consumer at a time gets messages",
    )
    max_length: int | None = _argument(
        None, "x-max-length", int, types=(CLASSIC, QUORUM), doc="messages that may be ready"
    )
    max_length_bytes: int | None = _argument(
        None, "x-max-length-bytes", int, types=QUEUE_TYPES, doc="octets that may be ready"
    )
    overflow: str = _argument(
        DROP_HEAD, "x-overflow", str, types=(CLASSIC, QUORUM), doc="what goes when it is full"
    )
    message_ttl_ms: int | None = _argument(
        None, "x-message-ttl", int, types=(CLASSIC, QUORUM), doc="ms that a message may wait"
    )
    expires_ms: int | None = _argument(
        None,
        "x-expires",
        int,
        types=(CLASSIC, QUORUM),
        doc="ms without a consumer after which the queue is deleted",
        least=1,
    )
    dead_letter_exchange: str | None = _argument(
        None,
        "x-dead-letter-exchange",
        str,
        types=(CLASSIC, QUORUM),
        doc="where messages go that expire, are rejected, or find no room",
    )
    dead_letter_routing_key: str | None = _argument(
        None,
        "x-dead-letter-routing-key",
        str,
        types=(CLASSIC, QUORUM),
        doc="with which key they go there, instead of their own",
    )
    delivery_limit: int | None = _argument(
        None,
        "x-delivery-limit",
        int,
        types=(QUORUM,),
        doc="deliveries that may fail; -1 is no limit",
        least=-1,
    )
    max_priority: int | None = _argument(
        None, "x-max-priority", int, types=(CLASSIC,), doc="the highest priority of a message"
    )
    max_age_ms: int | None = _argument(
        None, "x-max-age", str, types=(STREAM,), doc="how old a message may get, such as 7D or 30s"
    )

    def __post_init__(self) -> None:
        """Check the values, each alone and all together."""
        _one_of("x-queue-type", self.queue_type, QUEUE_TYPES)
        _one_of("x-overflow", self.overflow, OVERFLOWS)
        for item in fields(self):
            value = getattr(self, item.name)
            if value == item.default:
                continue
            kind = int if item.name == "max_age_ms" else item.metadata["kind"]
            _check_kind(item.metadata["x_name"], value, kind, item.metadata["least"])
            _check_type(item.metadata["x_name"], self.queue_type, item.metadata["types"])
        for limit, x_name in (
            (self.message_ttl_ms, "x-message-ttl"),
            (self.expires_ms, "x-expires"),
        ):
            if limit is not None and limit > EXPIRY_LIMIT_MS:
                raise QueueArgumentError(
                    f"{x_name} {limit} ms is too long; legal: up to {EXPIRY_LIMIT_MS}"
                )
        if self.max_priority is not None and self.max_priority > MAX_PRIORITY:
            raise QueueArgumentError(
                f"x-max-priority {self.max_priority} is too large; legal: 0 to {MAX_PRIORITY}"
            )
        if self.dead_letter_routing_key is not None and self.dead_letter_exchange is None:
            raise QueueArgumentError(
                "x-dead-letter-routing-key without x-dead-letter-exchange: there is no exchange to"
                " send dead messages to; legal: give both, or neither"
            )

    @property
    def limits_what_waits(self) -> bool:
        """Whether a message that comes may have to leave at once, or be refused."""
        limits = (self.max_length, self.max_length_bytes, self.message_ttl_ms)
        return any(limit is not None for limit in limits)

    @classmethod
    def from_x(cls, mapping: Mapping[str, Any]) -> QueueArguments:
        """The arguments that a client gave.

        Args:
            mapping: RabbitMQ's names to values; what concerns storage alone is checked and read
                over, and so is a name that no type of queue knows.

        Raises:
            QueueArgumentError: a name is not for this type of queue, a value has the wrong type
                or is out of range, or two of them contradict each other.
        """
        known = {item.metadata["x_name"]: item for item in fields(cls)}
        queue_type = _one_of("x-queue-type", mapping.get("x-queue-type", CLASSIC), QUEUE_TYPES)
        values: dict[str, Any] = {}
        for x_name, value in mapping.items():
            if x_name in STORAGE:
                types, legal = STORAGE[x_name]
                _check_type(x_name, queue_type, types)
                _check_storage(x_name, value, legal)
            item = known.get(x_name)
            if item is None:
                continue
            _check_type(x_name, queue_type, item.metadata["types"])
            _check_kind(x_name, value, item.metadata["kind"], item.metadata["least"])
            values[item.name] = _max_age_ms(value) if x_name == "x-max-age" else value
        return cls(**values)

    def to_x(self) -> dict[str, Any]:
        """RabbitMQ's names to values, for what is not as by default; an age in seconds."""
        found = {
            item.metadata["x_name"]: getattr(self, item.name)
            for item in fields(self)
            if getattr(self, item.name) != item.default
        }
        if self.max_age_ms is not None:
            found["x-max-age"] = f"{self.max_age_ms // MS_OF_UNIT['s']}s"
        return found


def legal_names(queue_type: str) -> tuple[str, ...]:
    """RabbitMQ's names of the arguments that a queue of this type takes."""
    ours = {item.metadata["x_name"]: item.metadata["types"] for item in fields(QueueArguments)}
    others = {x_name: types for x_name, (types, _) in STORAGE.items()}
    return tuple(name for name, types in (ours | others).items() if queue_type in types)


def _check_storage(x_name: str, value: Any, legal: int | tuple[object, ...] | None) -> None:
    if isinstance(legal, int):
        _check_kind(x_name, value, int, legal)
    elif legal is not None:
        _check_kind(x_name, value, type(legal[0]), 0)
        if value not in legal:
            listed = ", ".join(map(str, legal))
            raise QueueArgumentError(f"{x_name} {told(value)} is unknown; legal: {listed}")


def _one_of(x_name: str, value: Any, legal: tuple[str, ...]) -> str:
    if value not in legal:
        raise QueueArgumentError(f"{x_name} {told(value)} is unknown; legal: {', '.join(legal)}")
    return str(value)


def _check_type(x_name: str, queue_type: str, types: tuple[str, ...]) -> None:
    if queue_type not in types:
        raise QueueArgumentError(
            f"{x_name} is not for a {queue_type} queue, only for: {', '.join(types)}; legal here:"
            f" {', '.join(legal_names(queue_type))}"
        )


_TYPE_NAMES = {
    "int": "signedint",
    "str": "longstr",
    "float": "double",
    "Float32": "float",
    "dict": "table",
    "list": "array",
    "bytes": "binary",
    "NoneType": "void",
    "OtherLong": "long",
}
INTEGERS = ("byte", "short", "signedint", "long", "unsignedbyte", "unsignedshort", "unsignedint")
"""By RabbitMQ's names, the types of which a number in an argument may be (`rabbit.hrl`)."""


def type_name(value: object) -> str:
    """RabbitMQ's name of a value's type in a field table (`rabbit_binary_parser.erl`)."""
    name = type(value).__name__
    if type(value) is int and not -(2**31) <= value < 2**31:
        return "long"
    return _TYPE_NAMES.get(name, name.lower())


def told(value: object) -> str:
    """A value as RabbitMQ's errors write it (`rabbit_misc.erl:val`): Python's True is 'true'."""
    return "none" if value is None else f"'{_plain(value)}'"


def _plain(value: object) -> str:
    """A value without the class that keeps its AMQP type."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return f"{value:d}"
        case float():
            return float.__repr__(value)
        case bytes():
            return f"0x{value.hex()}"
        case list() | tuple():
            return f"[{', '.join(map(_plain, value))}]"
        case dict():
            return f"{{{', '.join(f'{_plain(k)}: {_plain(v)}' for k, v in value.items())}}}"
    return str(value)


def told_with_type(value: object) -> str:
    """The same, with the type, of a value that stands alone; none if there is no value."""
    if value is None:
        return told(value)
    return f"the value {told(value)} of type '{type_name(value)}'"


_KIND_WORDS = {str: "a string", int: "an integer", bool: "true or false"}


def _check_kind(x_name: str, value: Any, kind: type, least: int) -> None:
    # A bool or a timestamp is an int in Python; in AMQP it is not.
    wrong = not isinstance(value, kind) or (kind is int and type_name(value) not in INTEGERS)
    if wrong:
        raise QueueArgumentError(
            f"{x_name} has {told_with_type(value)}; legal: {_KIND_WORDS[kind]}"
        )
    if kind is int and value < least:
        raise QueueArgumentError(f"{x_name} {value} is too small; legal: {least} or more")


def age_ms(text: str) -> int | None:
    """An age as a stream's terms write it, such as 7D or 30s; None if it is none, or 0."""
    found = _AGE.fullmatch(text)
    return int(found[1]) * MS_OF_UNIT[found[2]] or None if found else None


def _max_age_ms(text: str) -> int:
    age = age_ms(text)
    if age is None:
        raise QueueArgumentError(
            f"x-max-age {text!r} is no age; legal: a number above 0 and one of the units"
            f" {', '.join(sorted(MS_OF_UNIT))}, such as 7D or 30s"
        )
    return age


NO_ARGUMENTS = QueueArguments()
"""A plain classic queue."""
