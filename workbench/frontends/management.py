"""RabbitMQ's management node: HTTP over AMQP, the part that official clients use.

A request is a message whose `subject` is the method and whose `to` is the path; the response has
the status as its `subject`. Here a request is looked at and answered, in the order in which
`rabbit_amqp_management.erl` looks; links, credit and messages on them are somebody else's.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from workbench.amqp10.errors import DecodeError, LocalProtocolError
from workbench.amqp10.messaging import (
    AmqpValue,
    ApplicationProperties,
    Properties,
    Section,
    decode_section,
    encode_message,
)
from workbench.amqp10.value_text import value_text
from workbench.amqp10.values import Array, Char, Float32, Long, MapPairs, Symbol, UInt, ULong
from workbench.broker.routing import (
    ALTERNATE,
    DEFAULT,
    TYPES,
    Binding,
    RoutingError,
)
from workbench.broker.virtual_host import (
    QueueConflictError,
    QueueLockedError,
    QueuePropertyError,
    VirtualHost,
)
from workbench.queues import QueueArgumentError, QueueError

from .amqp091.content import to_10

OK, CREATED, NO_CONTENT = 200, 201, 204
BAD_REQUEST, FORBIDDEN, NOT_FOUND, CONFLICT = 400, 403, 404, 409
ME = "$me"
RESERVED = "amq."
DEFAULT_TYPE = {"x-queue-type": "classic"}
HASH_OCTETS = 6
VHOST = "/"
NODE_NAME = "rabbit@workbench"


Fields = Mapping[str, type | None]
"""Legal fields of a body and the type of each; None is a map of arguments."""


@dataclass(frozen=True, slots=True)
class Response:
    """Status and body of an answer."""

    status: int
    body: Any = None


Later = Callable[[Callable[[Response], None]], None]
"""Does what is asked, and tells the response when it is done."""


class RefusedRequestError(ValueError):
    """A request that gets another status than success; the text says why."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class UnexpectedRequestError(ValueError):
    """A request for which there is no rule: RabbitMQ ends the session; the text says why."""


class Management:
    """Answers a connection's requests about its virtual host.

    Args:
        vhost: of the broker.
        connection: who asks: exclusive queues of others are locked.
    """

    def __init__(self, vhost: VirtualHost, connection: str) -> None:
        self._vhost = vhost
        self._connection = connection

    def answer(self, request: bytes, respond: Callable[[bytes], None]) -> None:
        """Hand the encoded response to an encoded request to `respond`, at once or later.

        Raises:
            UnexpectedRequestError: it is none that the node knows.
        """
        properties, body = _request(request)

        def tell(response: Response) -> None:
            answer: list[Section] = [
                Properties(subject=str(response.status), correlation_id=properties.message_id),
                ApplicationProperties({"http:response": "1.1"}),
                AmqpValue(response.body),
            ]
            try:
                octets = encode_message(answer)
            except LocalProtocolError as error:  # arguments that an answer nests one deeper
                tell(Response(BAD_REQUEST, f"the answer cannot be sent: {error}"))
            else:
                respond(octets)

        try:
            response = self.handle(str(properties.subject), str(properties.to), body)
            if not isinstance(response, Response):
                response(tell)
                return
        except RefusedRequestError as refused:
            response = Response(refused.status, str(refused))
        except (QueueLockedError, QueuePropertyError, QueueError) as error:
            response = Response(BAD_REQUEST, str(error))
        except (QueueConflictError, QueueArgumentError) as error:
            response = Response(CONFLICT, str(error))
        tell(response)

    def handle(self, method: str, target: str, body: Any) -> Response | Later:
        """Status and body for a method, a path with a query, and a decoded body.

        Raises:
            UnexpectedRequestError: there is no such method, path or kind of body.
            RefusedRequestError: a name, a field or a value is not possible.
            QueueLockedError, QueuePropertyError, QueueConflictError, QueueArgumentError: a queue
                cannot be declared or used so.
        """
        path, asked = _split(target)
        for pattern, methods in _ROUTES:
            found = pattern.fullmatch(path)
            if found is None:
                continue
            handler = methods.get(method)
            if handler is None:
                legal = ", ".join(sorted(methods))
                raise UnexpectedRequestError(f"no method {method!r} for {path}; legal: {legal}")
            if method in ("GET", "DELETE") and body is not None:
                raise UnexpectedRequestError(f"{method} {path} has a body; legal: null")
            names = [unquote(name) for name in found.groups()]
            return handler(self, *names, path=path, query=asked, body=body)
        raise UnexpectedRequestError(f"no such path: {path!r}")

    # -- queues -----------------------------------------------------------------------------

    def _get_queue(self, name: str, **_: Any) -> Response:
        self._require(name)
        return Response(OK, self._queue_map(name))

    def _put_queue(self, name: str, *, body: Any, **_: Any) -> Response:
        wanted = _fields(body, "queue property", _QUEUE_FIELDS)
        # The client need not say the type; it is told it in any case.
        arguments = DEFAULT_TYPE | _arguments(wanted.get("arguments", {}))
        if not name:
            raise RefusedRequestError(BAD_REQUEST, "declare queue with empty name not allowed")
        _check_line(name)
        _check_reserved("queue", name)
        if name not in self._vhost.queues:
            _check_exchange_argument(arguments, "x-dead-letter-exchange")
        declared = self._vhost.declare_for(
            self._connection,
            name,
            durable=wanted.get("durable", True),
            auto_delete=wanted.get("auto_delete", False),
            exclusive=wanted.get("exclusive", False),
            arguments=arguments,
        )
        return Response(CREATED if declared.created else OK, self._queue_map(name))

    def _delete_queue(self, name: str, **_: Any) -> Response:
        _check_line(name)
        # A queue that is not there is deleted already, as with RabbitMQ.
        count = self._vhost.delete_for(self._connection, name)
        return Response(OK, {"message_count": ULong(count)})

    def _purge_queue(self, name: str, **_: Any) -> Later:
        self._require(name)
        self._vhost.check_access(name, self._connection)

        def purge(tell: Callable[[Response], None]) -> None:
            self._vhost.purge(
                name, lambda count: tell(Response(OK, {"message_count": ULong(count)}))
            )

        return purge

    def _require(self, name: str) -> None:
        if name not in self._vhost.queues:
            raise RefusedRequestError(NOT_FOUND, _no_queue(name))

    def _queue_map(self, name: str) -> dict[str, Any]:
        queue, terms = self._vhost.queues[name], self._vhost.terms[name]
        queue.touch()
        return {
            "name": name,
            "vhost": VHOST,
            "durable": terms.durable,
            "auto_delete": terms.auto_delete,
            "exclusive": terms.owner is not None,
            "type": queue.arguments.queue_type,
            "arguments": _told(terms.arguments.items()),
            "leader": NODE_NAME,
            "replicas": Array("string", (NODE_NAME,)),
            "message_count": ULong(queue.queue.ready),
            "consumer_count": UInt(len(queue.queue.consumers())),
        }

    # -- exchanges and bindings -------------------------------------------------------------

    def _put_exchange(self, name: str, *, body: Any, **_: Any) -> Response:
        wanted = _fields(body, "exchange property", _EXCHANGE_FIELDS)
        arguments = _arguments(wanted.get("arguments", {}))
        kind = wanted.get("type", "direct")
        if kind not in TYPES:
            raise RefusedRequestError(
                BAD_REQUEST, f"unknown exchange type {kind!r}; legal: {', '.join(TYPES)}"
            )
        _check_not_default(name)
        if name not in self._vhost.routing.exchanges:
            _check_line(name)
            _check_reserved("exchange", name)
            _check_exchange_argument(arguments, ALTERNATE)
        try:
            self._vhost.routing.declare(
                name,
                kind,
                durable=wanted.get("durable", True),
                auto_delete=wanted.get("auto_delete", False),
                internal=wanted.get("internal", False),
                arguments=arguments,
            )
        except RoutingError as error:
            raise RefusedRequestError(CONFLICT, str(error)) from None
        return Response(NO_CONTENT)

    def _delete_exchange(self, name: str, **_: Any) -> Response:
        _check_line(name)
        _check_not_default(name)
        _check_reserved("exchange", name)
        self._vhost.routing.delete(name)
        return Response(NO_CONTENT)

    def _post_binding(self, *, body: Any, **_: Any) -> Response:
        wanted = _fields(body, "binding field", _BINDING_FIELDS)
        missing = {"source", "binding_key", "arguments"} - set(wanted)
        to_exchange = "destination_queue" not in wanted
        if missing or (to_exchange and "destination_exchange" not in wanted):
            raise UnexpectedRequestError(
                "a binding needs source, binding_key, arguments, and destination_queue or"
                " destination_exchange"
            )
        binding = Binding(
            source=wanted["source"],
            destination=wanted["destination_exchange" if to_exchange else "destination_queue"],
            to_exchange=to_exchange,
            key=wanted["binding_key"],
            arguments=tuple(sorted(_arguments(wanted["arguments"]).items(), key=itemgetter(0))),
        )
        self._check_ends(binding.source, binding.destination, to_exchange)
        if not to_exchange and binding.destination not in self._vhost.queues:
            raise RefusedRequestError(BAD_REQUEST, _no_queue(binding.destination))
        try:
            self._vhost.routing.bind(binding)
        except RoutingError as error:
            raise RefusedRequestError(BAD_REQUEST, str(error)) from None
        return Response(NO_CONTENT)

    def _get_bindings(self, *, query: Mapping[str, str], **_: Any) -> Response:
        if "src" not in query or "key" not in query:
            raise UnexpectedRequestError("bindings are asked for with src, key, and dstq or dste")
        to_exchange = "dste" in query
        destination = query.get("dste" if to_exchange else "dstq")
        if destination is None:
            raise RefusedRequestError(BAD_REQUEST, "missing 'dste' or 'dstq' in query")
        self._check_ends(query["src"], destination, to_exchange)
        found = self._vhost.routing.bindings(
            query["src"], destination, to_exchange=to_exchange, key=query["key"]
        )
        return Response(OK, [self._binding_map(binding) for binding in found])

    def _delete_binding(self, *, path: str, **_: Any) -> Response:
        segment = path.rpartition("/")[2]
        found = _BINDING.fullmatch(segment)
        if found is None:
            raise RefusedRequestError(BAD_REQUEST, f"bad binding path segment {segment!r}")
        source, kind, destination, key = (unquote(name) for name in found.groups()[:4])
        to_exchange = kind == "dste"
        self._check_ends(source, destination, to_exchange)
        for binding in self._vhost.routing.bindings(
            source, destination, to_exchange=to_exchange, key=key
        ):
            if arguments_hash(binding.arguments) == found["args"]:
                self._vhost.routing.unbind(binding)
        return Response(NO_CONTENT)

    def _check_ends(self, source: str, destination: str, to_exchange: bool) -> None:
        for name in (source, *([destination] if to_exchange else [])):
            _check_not_default(name)
        for name in (source, destination):
            _check_line(name)
        if not to_exchange:
            self._vhost.check_access(destination, self._connection)

    def _binding_map(self, binding: Binding) -> dict[str, Any]:
        kind = "destination_exchange" if binding.to_exchange else "destination_queue"
        short = "dste" if binding.to_exchange else "dstq"
        source, destination, key = (
            quote(name, safe="") for name in (binding.source, binding.destination, binding.key)
        )
        return {
            "source": binding.source,
            kind: binding.destination,
            "binding_key": binding.key,
            "arguments": _told(binding.arguments),
            "location": f"/bindings/src={source};{short}={destination};key={key};"
            f"args={arguments_hash(binding.arguments)}",
        }

    def _put_token(self, *, body: Any, **_: Any) -> Response:
        """Users with a password never expire, so a token changes nothing (`update_state`)."""
        if type(body) is not bytes:
            raise UnexpectedRequestError(f"{value_text(body)} is no token; legal: a binary")
        return Response(NO_CONTENT)


Handler = Callable[..., Response | Later]
_BOOLEANS = dict.fromkeys(("durable", "auto_delete"), bool)
_QUEUE_FIELDS: Fields = {**_BOOLEANS, "exclusive": bool, "arguments": None}
_EXCHANGE_FIELDS: Fields = {**_BOOLEANS, "internal": bool, "type": str, "arguments": None}
_BINDING_FIELDS: Fields = {
    **dict.fromkeys(("source", "destination_queue", "destination_exchange", "binding_key"), str),
    "arguments": None,
}
_BINDING = re.compile(
    r"src=([\w.~%-]+);(dst[qe])=([\w.~%-]+);key=([\w.~%-]*);args=(?P<args>[\w-]*)", re.ASCII
)
_URI = re.compile(r"(?:[\w.~!$&'()*+,;=:@/?#-]|%[0-9A-Fa-f]{2})*", re.ASCII)
_ROUTES: tuple[tuple[re.Pattern[str], dict[str, Handler]], ...] = (
    (
        re.compile("/queues/([^/]*)"),
        {
            "GET": Management._get_queue,
            "PUT": Management._put_queue,
            "DELETE": Management._delete_queue,
        },
    ),
    (re.compile("/queues/([^/]*)/messages"), {"DELETE": Management._purge_queue}),
    (
        re.compile("/exchanges/([^/]*)"),
        {"PUT": Management._put_exchange, "DELETE": Management._delete_exchange},
    ),
    (
        re.compile("/bindings"),
        {"POST": Management._post_binding, "GET": Management._get_bindings},
    ),
    (re.compile("/bindings/[^/]*"), {"DELETE": Management._delete_binding}),
    (re.compile("/auth/tokens"), {"PUT": Management._put_token}),
)


def arguments_hash(arguments: tuple[tuple[str, Any], ...]) -> str:
    """What stands for a binding's arguments in its path; empty if it has none.

    RabbitMQ takes a hash of the Erlang term, which only it can compute; clients give back what
    they were told, so another hash does as well.
    """
    if not arguments:
        return ""
    text = json.dumps(sorted((name, repr(value)) for name, value in arguments))
    digest = hashlib.sha256(text.encode()).digest()[:HASH_OCTETS]
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def _request(request: bytes) -> tuple[Properties, Any]:
    """Properties and body of a request; its sections may come in any order.

    Raises:
        UnexpectedRequestError: it is no message, or not addressed as a request is.
    """
    sections: list[Section] = []
    at = 0
    while at < len(request):
        try:
            section, at = decode_section(request, at)
        except DecodeError as error:
            raise UnexpectedRequestError(error.message) from None
        sections.append(section)
    properties = next((one for one in sections if isinstance(one, Properties)), None)
    bodies = [one.value for one in sections if isinstance(one, AmqpValue)]
    if properties is None or not bodies:
        raise UnexpectedRequestError("a request has properties, and an amqp-value for its body")
    if type(properties.to) is not str or type(properties.subject) is not str:
        raise UnexpectedRequestError("a request has its path in `to` and its method in `subject`")
    if properties.reply_to != ME:
        told = value_text(properties.reply_to)
        raise UnexpectedRequestError(f"a request has the reply-to {ME}, not {told}")
    return properties, bodies[-1]


def _split(target: str) -> tuple[str, dict[str, str]]:
    """Path and query of what a request is about."""
    try:
        parts = urlsplit(target)
    except ValueError:
        parts = None
    if parts is None or _URI.fullmatch(target) is None:
        raise RefusedRequestError(BAD_REQUEST, f"failed to normalize URI {target!r}")
    return parts.path, dict(parse_qsl(parts.query, True))


def _fields(body: Any, what: str, legal: Fields) -> dict[str, Any]:
    """The fields of a body, of which each is known and of its type."""
    found = {}
    for name, value in _items(body):
        kind = legal.get(name, object) if type(name) is str else object  # of no value
        if kind is not None and type(value) is not kind:
            raise RefusedRequestError(
                BAD_REQUEST,
                f"bad {what} {value_text(name)}: {value_text(value)}; legal: {', '.join(legal)}",
            )
        found[name] = value
    return found


def _items(value: Any) -> list[tuple[Any, Any]]:
    if not isinstance(value, Mapping | MapPairs):
        raise UnexpectedRequestError(f"a map is wanted, not {value_text(value)}")
    return list(value.items())


def _arguments(value: Any) -> dict[str, Any]:
    """Arguments as RabbitMQ keeps them."""
    found = {}
    for name, one in _items(value):
        if not isinstance(name, str) or isinstance(name, Char):
            raise RefusedRequestError(
                BAD_REQUEST, f"unsupported argument {value_text(name)}: {value_text(one)}"
            )
        found[str(name)] = _kept(one)
    return found


def _kept(value: Any) -> Any:
    """A value as it comes back from a table of AMQP 0-9-1 [`mc_amqpl.erl:to_091`, `from_091`]."""
    match value:
        case None | bool() | Float32() | float():
            return value
        case Char():
            pass
        case Symbol():
            return str(value)
        case str():
            return value
        case ULong() if value <= Long.MAXIMUM:
            return Long(value)
        case int():
            return value
        case bytes():
            try:
                return value.decode()
            except UnicodeDecodeError:
                return value
        case Array():
            return [_kept(one) for one in value.items]
        case list():
            return [_kept(one) for one in value]
        case Mapping() | MapPairs():
            return {Symbol(str(name)): _kept(one) for name, one in _items(value)}
    raise UnexpectedRequestError(f"no argument can be {value_text(value)}")


def _told(arguments: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Arguments as AMQP 1.0 has them, also those that came over AMQP 0-9-1."""
    return {name: to_10(value) for name, value in arguments}


def _no_queue(name: str) -> str:
    return f"no queue {name!r} in vhost {VHOST!r}"


def _check_line(name: str) -> None:
    if "\n" in name or "\r" in name:
        raise RefusedRequestError(
            BAD_REQUEST, f"bad name {name!r}: line feed and carriage return are not allowed"
        )


def _check_reserved(what: str, name: str) -> None:
    if name.startswith(RESERVED):
        raise RefusedRequestError(
            FORBIDDEN, f"{what} {name!r} starts with reserved prefix {RESERVED!r}"
        )


def _check_not_default(exchange: str) -> None:
    if exchange == DEFAULT:
        raise RefusedRequestError(FORBIDDEN, "operation not permitted on the default exchange")


def _check_exchange_argument(arguments: Mapping[str, Any], name: str) -> None:
    exchange = arguments.get(name, DEFAULT)
    if not isinstance(exchange, str):
        raise RefusedRequestError(
            BAD_REQUEST, f"{name} is {value_text(exchange)}; legal: the name of an exchange"
        )
