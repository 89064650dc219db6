"""Exchanges and bindings: which queues a message goes to. Names in, names out.

The four types of AMQP 0-9-1's model, which RabbitMQ keeps for AMQP 1.0: direct, fanout, topic and
headers; exchanges may be bound to exchanges. A queue gets a message once, however many bindings
match. Source: RabbitMQ's `rabbit_exchange_type_*.erl` and `rabbit_exchange.erl` (`route`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from workbench.queues import Message
from workbench.queues.arguments import told

from .equivalence import difference

DIRECT, FANOUT, TOPIC, HEADERS = "direct", "fanout", "topic", "headers"
TYPES = (DIRECT, FANOUT, TOPIC, HEADERS)
DEFAULT = ""
ALTERNATE = "alternate-exchange"
MATCHES = ("all", "any", "all-with-x", "any-with-x")
PREDECLARED: Mapping[str, str] = {
    DEFAULT: DIRECT,
    "amq.direct": DIRECT,
    "amq.fanout": FANOUT,
    "amq.topic": TOPIC,
    "amq.headers": HEADERS,
    "amq.match": HEADERS,
    "amq.rabbitmq.trace": TOPIC,
}
NO_MESSAGE = Message(payload=b"")
INTERNAL = ("amq.rabbitmq.trace",)
"""Of these, those to which nobody may publish."""


class RoutingError(ValueError):
    """A declaration or binding that is not possible.

    Attributes:
        reason: `not-found`, `precondition-failed` or `access-refused`.
    """

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(text)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Binding:
    """A rule of an exchange.

    Attributes:
        source: the exchange.
        destination: a queue, or an exchange.
        to_exchange: which of the two.
        key: binding key.
        arguments: for a headers exchange, what to match; as sorted pairs.
        bools: which of their values are true or false; in AMQP true is not 1.
    """

    source: str
    destination: str
    to_exchange: bool = False
    key: str = ""
    arguments: tuple[tuple[str, Any], ...] = ()
    bools: tuple[bool, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        bools = tuple(isinstance(value, bool) for _, value in self.arguments)
        object.__setattr__(self, "bools", bools)

    @property
    def exchanges(self) -> tuple[str, ...]:
        """Names of the exchanges that it joins, or of the one that it leads away from."""
        return (self.source, self.destination) if self.to_exchange else (self.source,)


@dataclass(slots=True, kw_only=True)
class Exchange:
    """An exchange and what leads away from it."""

    name: str
    type: str = DIRECT
    durable: bool = True
    auto_delete: bool = False
    internal: bool = False
    arguments: dict[str, Any] = field(default_factory=dict)
    bindings: list[Binding] = field(default_factory=list)


class Routing:
    """All exchanges of a virtual host.

    Attributes:
        exchanges: by name; the default one has the empty name.
    """

    def __init__(self) -> None:
        self.exchanges: dict[str, Exchange] = {
            name: Exchange(name=name, type=kind, internal=name in INTERNAL)
            for name, kind in PREDECLARED.items()
        }

    # -- exchanges --------------------------------------------------------------------------

    def declare(
        self,
        name: str,
        type: str = DIRECT,
        *,
        durable: bool = True,
        auto_delete: bool = False,
        internal: bool = False,
        arguments: Mapping[str, Any] | None = None,
    ) -> Exchange:
        """Make an exchange, or find an equal one.

        Raises:
            RoutingError: another one has the name, the name is reserved, or the type is unknown.
        """
        wanted = Exchange(
            name=name,
            type=type,
            durable=durable,
            auto_delete=auto_delete,
            internal=internal,
            arguments=dict(arguments or {}),
        )
        there = self.exchanges.get(name)
        if there is not None:
            self._require_equal(there, wanted)
            return there
        if name.startswith("amq."):
            raise RoutingError(
                "access-refused", f"exchange name '{name}' contains reserved prefix 'amq.*'"
            )
        if type not in TYPES:
            raise RoutingError(
                "precondition-failed",
                f"no exchange type {type!r}; there are: {', '.join(TYPES)}",
            )
        alternate = wanted.arguments.get(ALTERNATE)
        if alternate is not None and not isinstance(alternate, str):
            raise RoutingError(
                "precondition-failed",
                f"invalid arg {ALTERNATE!r} for exchange {name!r}: {told(alternate)}; legal: the"
                " name of an exchange",
            )
        self.exchanges[name] = wanted
        return wanted

    def delete(self, name: str) -> bool:
        """Delete an exchange with its bindings, and those that lead to it; False if none is there.

        Raises:
            RoutingError: it is one that cannot be deleted.
        """
        not_default(name)
        if name.startswith("amq."):
            raise RoutingError(
                "access-refused", f"deletion of system exchange '{name}' in vhost '/' not allowed"
            )
        if self.exchanges.pop(name, None) is None:
            return False
        self._unbind_from(name, to_exchange=True)
        return True

    # -- bindings ---------------------------------------------------------------------------

    def bind(self, binding: Binding) -> None:
        """Add a binding; one that is there already is left as it is.

        Raises:
            RoutingError: an exchange is not there, or is the default one.
        """
        exchange = self._bindable(binding)
        if binding.to_exchange:
            self._exchange(binding.destination)
        how = dict(binding.arguments).get("x-match", MATCHES[0])
        if exchange.type == HEADERS and how not in MATCHES:
            raise RoutingError(
                "precondition-failed",
                f"invalid x-match field value {told(how)}; legal: {', '.join(MATCHES)}",
            )
        if binding not in exchange.bindings:
            exchange.bindings.append(binding)

    def unbind(self, binding: Binding) -> bool:
        """Take a binding away; False if it was not there.

        Raises:
            RoutingError: the exchange is not there, or is the default one.
        """
        exchange = self._bindable(binding)
        if binding not in exchange.bindings:
            return False
        exchange.bindings.remove(binding)
        if exchange.auto_delete and not exchange.bindings:
            self.delete(exchange.name)
        return True

    def bindings(
        self, source: str, destination: str, *, to_exchange: bool = False, key: str | None = None
    ) -> list[Binding]:
        """The bindings from an exchange to a destination, with any key or with one."""
        exchange = self.exchanges.get(source)
        return [
            binding
            for binding in (exchange.bindings if exchange is not None else ())
            if binding.destination == destination
            and binding.to_exchange == to_exchange
            and key in (None, binding.key)
        ]

    def queue_gone(self, queue: str) -> None:
        """Forget every binding to a queue."""
        self._unbind_from(queue, to_exchange=False)

    # -- routing ----------------------------------------------------------------------------

    def route(
        self, exchange: str, routing_key: str, message: Message = NO_MESSAGE
    ) -> tuple[str, ...]:
        """Names of the queues that a message goes to, each once; a queue may not exist.

        Args:
            exchange: to which it is published.
            routing_key: with which key.
            message: whose headers a headers exchange asks for.

        Raises:
            RoutingError: the exchange is not there.
        """
        if exchange == DEFAULT:
            return (routing_key,)
        queues: dict[str, None] = {}
        seen = {exchange}
        pending = [self._exchange(exchange)]
        while pending:
            for binding in _matching(pending.pop(), routing_key, message):
                if not binding.to_exchange:
                    queues[binding.destination] = None
                elif binding.destination not in seen and binding.destination in self.exchanges:
                    seen.add(binding.destination)
                    pending.append(self.exchanges[binding.destination])
        return tuple(queues)

    # -- inside -----------------------------------------------------------------------------

    def _exchange(self, name: str) -> Exchange:
        try:
            return self.exchanges[name]
        except KeyError:
            raise RoutingError("not-found", f"no exchange '{name}' in vhost '/'") from None

    def _bindable(self, binding: Binding) -> Exchange:
        not_default(*binding.exchanges)
        return self._exchange(binding.source)

    def _unbind_from(self, destination: str, *, to_exchange: bool) -> None:
        gone = [(destination, to_exchange)]
        while gone:
            one = gone.pop()
            for exchange in list(self.exchanges.values()):
                kept = [
                    binding
                    for binding in exchange.bindings
                    if (binding.destination, binding.to_exchange) != one
                ]
                if len(kept) < len(exchange.bindings):
                    exchange.bindings = kept
                    if exchange.auto_delete and not kept:
                        del self.exchanges[exchange.name]
                        gone.append((exchange.name, True))  # and with it what leads to it

    def _require_equal(self, there: Exchange, wanted: Exchange) -> None:
        """Other arguments than the alternate exchange may differ, as with RabbitMQ."""
        compared = ("type", "durable", "auto_delete", "internal")
        pairs = {name: (getattr(there, name), getattr(wanted, name)) for name in compared}
        pairs[ALTERNATE] = (there.arguments.get(ALTERNATE), wanted.arguments.get(ALTERNATE))
        for what, (present, asked) in pairs.items():
            wrong = difference(f"exchange '{there.name}'", what, present, asked)
            if wrong is not None:
                raise RoutingError("precondition-failed", wrong)


def not_default(*names: str) -> None:
    """See that no exchange is the default one, which leads to every queue by its name.

    Raises:
        RoutingError: one is.
    """
    if DEFAULT in names:
        raise RoutingError("access-refused", "operation not permitted on the default exchange")


def _matching(exchange: Exchange, routing_key: str, message: Message) -> Iterable[Binding]:
    match exchange.type:
        case "fanout":
            return exchange.bindings
        case "topic":
            words = routing_key.split(".") if routing_key else []
            return [one for one in exchange.bindings if topic_matches(one.key, words)]
        case "headers":
            headers = message.headers
            return [one for one in exchange.bindings if headers_match(one.arguments, headers)]
        case _:
            return [one for one in exchange.bindings if one.key == routing_key]


def topic_matches(pattern: str, words: list[str]) -> bool:
    """Whether a binding key matches a routing key: `*` is one word, `#` is any number of words.

    Args:
        pattern: words, `*` and `#` with dots between.
        words: of the routing key.
    """
    behind: dict[str, int] = {}  # where a word ends, as bits: bit i is behind the first i words
    for number, word in enumerate(words, 1):
        behind[word] = behind.get(word, 0) | 1 << number
    # Bits as well: the parts taken so far match that many words. An integer of 65,000 bits is moved
    # at once; over AMQP 1.0 a key may have as many words.
    reached, every = 1, (2 << len(words)) - 1
    for part in pattern.split(".") if pattern else []:
        if part == "#":
            reached = (reached | -reached) & every  # from the lowest bit on
        else:
            reached = reached << 1 & (every if part == "*" else behind.get(part, 0))
    return reached >> len(words) == 1


def headers_match(arguments: Iterable[tuple[str, Any]], headers: Mapping[str, Any]) -> bool:
    """Whether headers match a binding: all of its pairs, or any, as its `x-match` says.

    Pairs whose name begins with `x-` count with `all-with-x` and `any-with-x` alone. A pair whose
    value is None asks for the header's presence. With `all` and no pair everything matches.
    """
    wanted = dict(arguments)
    how = str(wanted.pop("x-match", "all"))
    pairs = [
        (name, value)
        for name, value in wanted.items()
        if how.endswith("-with-x") or not name.startswith("x-")
    ]
    hits = (name in headers and _same(value, headers[name]) for name, value in pairs)
    return any(hits) if how.startswith("any") else all(hits)


def _same(wanted: Any, found: Any) -> bool:
    """Whether a header has the value that a binding asks for; true is not 1, as it is in Python."""
    if wanted is None:
        return True
    return isinstance(wanted, bool) is isinstance(found, bool) and bool(wanted == found)
