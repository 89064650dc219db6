"""Which fields of frames are secrets: what a peer proves itself with, and what it is asked for."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from workbench.amqp010 import controls
from workbench.amqp091 import methods
from workbench.amqp10.performatives import SaslChallenge, SaslInit, SaslOutcome, SaslResponse

__all__ = ["SECRETS", "is_secret", "without_secret"]

_SECRET: dict[type, str] = {
    SaslInit: "initial_response",
    SaslChallenge: "challenge",
    SaslResponse: "response",
    SaslOutcome: "additional_data",
    methods.ConnectionStartOk: "response",
    methods.ConnectionSecure: "challenge",
    methods.ConnectionSecureOk: "response",
    methods.ConnectionUpdateSecret: "new_secret",
    controls.ConnectionStartOk: "response",
    controls.ConnectionSecure: "challenge",
    controls.ConnectionSecureOk: "response",
}
SECRETS = frozenset(_SECRET.values())
"""The names of these fields, as rows have them."""


def is_secret(name: str, value: object) -> bool:
    """Whether a field of a row is a secret that was told: it is counted, and not shown."""
    return name in SECRETS and value is not None


def without_secret(said: Any) -> Any:
    """A performative, method, control or whatever a frame holds, with zeros for its secret.

    Args:
        said: what the frame holds; given back as it is if there is no secret in it.
    """
    name = _SECRET.get(type(said))
    secret = name and getattr(said, name)
    return replace(said, **{name: bytes(len(secret))}) if name and secret else said
