"""Termini: the source and target of a link [3.5], and when a node made for one is deleted."""

from typing import TypeAlias

from workbench.amqp10.composite import Composite, composite
from workbench.amqp10.fields import optional
from workbench.amqp10.outcome import Outcome
from workbench.amqp10.restricted import TerminusDurability, TerminusExpiryPolicy
from workbench.amqp10.values import Described, MapValue


@composite("source", 0x28, provides=("source",))
class Source(Composite, frozen=True, gc=False):
    """Where messages of a link come from [3.5.3].

    Attributes:
        address: of the node.
        durable: what survives a restart.
        expiry_policy: when the timer of `timeout` starts.
        timeout: seconds.
        dynamic: ask the peer to make a node, or answer that it was made.
        dynamic_node_properties: of the made node.
        distribution_mode: `move` or `copy`.
        filter: name to a described filter.
        default_outcome: for deliveries settled without one.
        outcomes: symbols of the outcomes the link may use.
        capabilities: extensions.
    """

    address: str | None = optional("*", requires="address")
    durable: TerminusDurability | None = optional(
        "terminus-durability", default=TerminusDurability.NONE
    )
    expiry_policy: str | None = optional(
        "terminus-expiry-policy", default=TerminusExpiryPolicy.SESSION_END
    )
    timeout: int | None = optional("seconds", default=0)
    dynamic: bool | None = optional("boolean", default=False)
    dynamic_node_properties: dict[object, object] | None = optional("node-properties")
    distribution_mode: str | None = optional("symbol", requires="distribution-mode")
    filter: MapValue | None = optional("filter-set")
    default_outcome: Outcome | Described | None = optional("*", requires="outcome")
    outcomes: tuple[str, ...] | None = optional("symbol", multiple=True)
    capabilities: tuple[str, ...] | None = optional("symbol", multiple=True)


@composite("target", 0x29, provides=("target",))
class Target(Composite, frozen=True, gc=False):
    """Where messages of a link go [3.5.4]; fields as in `Source`."""

    address: str | None = optional("*", requires="address")
    durable: TerminusDurability | None = optional(
        "terminus-durability", default=TerminusDurability.NONE
    )
    expiry_policy: str | None = optional(
        "terminus-expiry-policy", default=TerminusExpiryPolicy.SESSION_END
    )
    timeout: int | None = optional("seconds", default=0)
    dynamic: bool | None = optional("boolean", default=False)
    dynamic_node_properties: dict[object, object] | None = optional("node-properties")
    capabilities: tuple[str, ...] | None = optional("symbol", multiple=True)


@composite("delete-on-close", 0x2B, provides=("lifetime-policy",))
class DeleteOnClose(Composite, frozen=True, gc=False):
    """The node goes when the link that made it is closed [3.5.10]."""


@composite("delete-on-no-links", 0x2C, provides=("lifetime-policy",))
class DeleteOnNoLinks(Composite, frozen=True, gc=False):
    """The node goes when no link to it is left [3.5.11]."""


@composite("delete-on-no-messages", 0x2D, provides=("lifetime-policy",))
class DeleteOnNoMessages(Composite, frozen=True, gc=False):
    """The node goes when the link that made it is closed and no message is left [3.5.12]."""


@composite("delete-on-no-links-or-messages", 0x2E, provides=("lifetime-policy",))
class DeleteOnNoLinksOrMessages(Composite, frozen=True, gc=False):
    """The node goes when neither link nor message is left [3.5.13]."""


LifetimePolicy: TypeAlias = (
    DeleteOnClose | DeleteOnNoLinks | DeleteOnNoMessages | DeleteOnNoLinksOrMessages
)
