"""RabbitMQ's management node: HTTP over AMQP, the part that official clients use.

A request is a message whose `subject` is the method and whose `to` is the path; the response has
the status as its `subject` [RabbitMQ `rabbit_amqp_management.erl`]. Here a request is looked at and
answered; links, credit and messages on them are somebody else's.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import parse_qsl, quote, unquote

from workbench.amqp.messaging import (
    AmqpValue,
    ApplicationProperties,
    Properties,
    Section,
    decode_section,
    encode_message,
)
from workbench.amqp.values import Array, UInt, ULong
from workbench.queues import QueueError

from .routing import Binding, Routing, RoutingError

OK, CREATED, NO_CONTENT = 200, 201, 204
BAD_REQUEST, FORBIDDEN, NOT_FOUND, CONFLICT = 400, 403, 404, 409
STATUS_OF = {"not-found": NOT_FOUND, "precondition-failed": CONFLICT, "access-refused": FORBIDDEN}
ME = "$me"
HASH_OCTETS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueInfo:
    """What is told of a queue.

    Attributes:
        type: `classic`, `quorum` or `stream`.
        message_count: messages ready.
        consumer_count: consumers attached.
    """

    name: str
    durable: bool
    auto_delete: bool
    exclusive: bool
    type: str
    arguments: Mapping[str, Any]
    message_count: int
    consumer_count: int
    leader: str
    replicas: tuple[str, ...]


class QueueConflictError(ValueError):
    """A queue that is there differs from what was declared; the text says in what."""


class QueueLockedError(ValueError):
    """A queue belongs to another connection."""


class Host(Protocol):
    """What the management node asks of its broker."""

    @property
    def routing(self) -> Routing:
        """Exchanges and bindings."""

    def queue_info(self, name: str) -> QueueInfo | None:
        """The queue, or None."""

    def declare_queue(
        self,
        name: str,
        *,
        durable: bool,
        auto_delete: bool,
        exclusive: bool,
        arguments: Mapping[str, Any],
    ) -> bool:
        """Make a queue; False if an equal one was there.

        Raises:
            QueueConflictError: another one was there.
            ValueError: the arguments are not possible.
        """

    def delete_queue(self, name: str) -> int:
        """Delete it and close its links; returns how many messages were ready."""

    def purge_queue(self, name: str) -> int:
        """Delete its ready messages; returns how many."""


@dataclass(frozen=True, slots=True)
class Response:
    """Status and body of an answer."""

    status: int
    body: Any = None


class BadRequestError(ValueError):
    """A request that is none; the text says why."""


class Management:
    """Answers requests about one virtual host.

    Args:
        host: the broker.
        vhost: its name, as it is told to clients.
    """

    def __init__(self, host: Host, vhost: str = "/") -> None:
        self._host = host
        self._vhost = vhost

    def answer(self, request: bytes) -> bytes:
        """The encoded response to an encoded request; a request that is none gets status 400.

        Raises:
            DecodeError: the payload is no message at all.
        """
        sections = _sections(request)
        properties = next((one for one in sections if isinstance(one, Properties)), Properties())
        body = next((one.value for one in sections if isinstance(one, AmqpValue)), None)
        try:
            if properties.message_id is None:
                raise BadRequestError("the request has no message-id")
            response = self.handle(properties.subject or "", str(properties.to or ""), body)
        except (BadRequestError, QueueLockedError) as error:
            response = Response(BAD_REQUEST, str(error))
        except RoutingError as error:
            response = Response(STATUS_OF[error.reason], str(error))
        answer: list[Section] = [
            Properties(subject=str(response.status), correlation_id=properties.message_id),
            ApplicationProperties({"http:response": "1.1"}),
            AmqpValue(response.body),
        ]
        return encode_message(answer)

    def handle(self, method: str, path: str, body: Any) -> Response:
        """Status and body for a method, a path and a decoded body.

        Raises:
            BadRequestError: path or body are not understood.
            RoutingError: an exchange or binding is not possible.
        """
        # Only a path and a query: whoever looks for a host in it trips over `//[`.
        where, _, asked = path.partition("?")
        for pattern, methods in _ROUTES:
            found = pattern.fullmatch(where)
            if found is None:
                continue
            handler = methods.get(method)
            if handler is None:
                legal = ", ".join(sorted(methods))
                raise BadRequestError(f"no method {method!r} for {path}; legal: {legal}")
            names = [unquote(name) for name in found.groups()]
            return handler(self, *names, query=dict(parse_qsl(asked, True)), body=body)
        raise BadRequestError(f"no such path: {path}")

    # -- queues -----------------------------------------------------------------------------

    def _get_queue(self, name: str, **_: Any) -> Response:
        info = self._host.queue_info(name)
        if info is None:
            return Response(NOT_FOUND, f"no queue {name!r} in vhost {self._vhost!r}")
        return Response(OK, self._queue_map(info))

    def _put_queue(self, name: str, *, body: Any, **_: Any) -> Response:
        wanted = _mapping(body)
        try:
            created = self._host.declare_queue(
                name,
                durable=_flag(wanted, "durable", True),
                auto_delete=_flag(wanted, "auto_delete", False),
                exclusive=_flag(wanted, "exclusive", False),
                arguments={str(key): one for key, one in _arguments(wanted).items()},
            )
        except QueueConflictError as error:
            return Response(CONFLICT, str(error))
        except ValueError as error:
            raise BadRequestError(str(error)) from error
        info = self._host.queue_info(name)
        assert info is not None
        return Response(CREATED if created else OK, self._queue_map(info))

    def _delete_queue(self, name: str, **_: Any) -> Response:
        # A queue that is not there is deleted already, as with RabbitMQ.
        there = self._host.queue_info(name) is not None
        count = self._host.delete_queue(name) if there else 0
        return Response(OK, {"message_count": ULong(count)})

    def _purge_queue(self, name: str, **_: Any) -> Response:
        if self._host.queue_info(name) is None:
            return Response(NOT_FOUND, f"no queue {name!r} in vhost {self._vhost!r}")
        try:
            count = self._host.purge_queue(name)
        except QueueError as error:
            raise BadRequestError(str(error)) from None
        return Response(OK, {"message_count": ULong(count)})

    def _queue_map(self, info: QueueInfo) -> dict[str, Any]:
        return {
            "name": info.name,
            "vhost": self._vhost,
            "durable": info.durable,
            "auto_delete": info.auto_delete,
            "exclusive": info.exclusive,
            "type": info.type,
            "arguments": dict(info.arguments),
            "leader": info.leader,
            "replicas": Array("string", info.replicas),
            "message_count": ULong(info.message_count),
            "consumer_count": UInt(info.consumer_count),
        }

    # -- exchanges and bindings -------------------------------------------------------------

    def _put_exchange(self, name: str, *, body: Any, **_: Any) -> Response:
        wanted = _mapping(body)
        self._host.routing.declare(
            name,
            str(wanted.get("type", "direct")),
            durable=_flag(wanted, "durable", True),
            auto_delete=_flag(wanted, "auto_delete", False),
            internal=_flag(wanted, "internal", False),
            arguments=_arguments(wanted),
        )
        return Response(NO_CONTENT)

    def _delete_exchange(self, name: str, **_: Any) -> Response:
        self._host.routing.delete(name)
        return Response(NO_CONTENT)

    def _post_binding(self, *, body: Any, **_: Any) -> Response:
        wanted = _mapping(body)
        destinations = [
            (name in ("destination_exchange",), str(wanted[name]))
            for name in ("destination_queue", "destination_exchange")
            if name in wanted
        ]
        if "source" not in wanted or len(destinations) != 1:
            raise BadRequestError(
                "a binding needs source, and destination_queue or destination_exchange"
            )
        to_exchange, destination = destinations[0]
        if not to_exchange and self._host.queue_info(destination) is None:
            raise RoutingError("not-found", f"no queue {destination!r} in vhost {self._vhost!r}")
        self._host.routing.bind(
            Binding(
                source=str(wanted["source"]),
                destination=destination,
                to_exchange=to_exchange,
                key=str(wanted.get("binding_key", "")),
                arguments=_pairs(_arguments(wanted)),
            )
        )
        return Response(NO_CONTENT)

    def _get_bindings(self, *, query: Mapping[str, str], **_: Any) -> Response:
        to_exchange = "dste" in query
        destination = query.get("dste" if to_exchange else "dstq")
        if "src" not in query or destination is None:
            raise BadRequestError("bindings are asked for with src, and dstq or dste")
        found = self._host.routing.bindings(
            query["src"], destination, to_exchange=to_exchange, key=query.get("key")
        )
        return Response(OK, [self._binding_map(binding) for binding in found])

    def _delete_binding(
        self, source: str, kind: str, destination: str, key: str, digest: str, **_: Any
    ) -> Response:
        found = self._host.routing.bindings(
            source, destination, to_exchange=kind == "dste", key=key
        )
        for binding in found:
            if arguments_hash(binding.arguments) == digest:
                self._host.routing.unbind(binding)
        return Response(NO_CONTENT)

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
            "arguments": dict(binding.arguments),
            "location": f"/bindings/src={source};{short}={destination};key={key};"
            f"args={arguments_hash(binding.arguments)}",
        }

    def _put_token(self, **_: Any) -> Response:
        raise BadRequestError("OAuth tokens are not used here")


Handler = Callable[..., Response]
_ROUTES: tuple[tuple[re.Pattern[str], dict[str, Handler]], ...] = (
    (
        re.compile("/queues/([^/]+)"),
        {
            "GET": Management._get_queue,
            "PUT": Management._put_queue,
            "DELETE": Management._delete_queue,
        },
    ),
    (re.compile("/queues/([^/]+)/messages"), {"DELETE": Management._purge_queue}),
    (
        re.compile("/exchanges/([^/]+)"),
        {"PUT": Management._put_exchange, "DELETE": Management._delete_exchange},
    ),
    (
        re.compile("/bindings"),
        {"POST": Management._post_binding, "GET": Management._get_bindings},
    ),
    (
        re.compile("/bindings/src=([^;/]*);(dstq|dste)=([^;/]*);key=([^;/]*);args=([^;/]*)"),
        {"DELETE": Management._delete_binding},
    ),
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


def _mapping(body: Any) -> Mapping[str, Any]:
    if body is None:
        return {}
    if not isinstance(body, Mapping):
        raise BadRequestError(f"the body is to be a map, not {type(body).__name__}")
    return {str(key): value for key, value in body.items()}


def _flag(wanted: Mapping[str, Any], name: str, default: bool) -> bool:
    value = wanted.get(name, default)
    if not isinstance(value, bool):
        raise BadRequestError(f"{name} is to be true or false, not {value!r}")
    return value


def _arguments(wanted: Mapping[str, Any]) -> Mapping[str, Any]:
    return _mapping(wanted.get("arguments"))


def _pairs(arguments: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted(arguments.items(), key=lambda pair: pair[0]))


def _sections(request: bytes) -> list[Section]:
    """The request's sections, in any order: RabbitMQ's own client writes a null body first."""
    found: list[Section] = []
    at = 0
    while at < len(request):
        section, at = decode_section(request, at)
        found.append(section)
    return found
