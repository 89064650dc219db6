"""The numbers of Qpid's two brokers, each with the option or the source that it comes from."""

from __future__ import annotations

from dataclasses import dataclass

from .specification import AMQP_0_10, AMQP_1_0, BROKER_J, INT_MAX, SPEC, Preset, _number


@dataclass(frozen=True, slots=True, kw_only=True)
class Qpid(Preset):
    """What both brokers have in common for AMQP 0-10."""

    conduct: str = SPEC
    protocols: tuple[str, ...] = (AMQP_0_10,)

    channel_max: int = _number(
        255,
        unit="channel",
        source="ours: each session costs memory; qpidd tells 32767",
        doc="highest channel number that either end accepts",
    )
    max_frame_size_010: int = _number(
        65_535,
        unit="octets",
        source="ConnectionHandler.cpp: 64 * 1024 - 1",
        doc="largest frame of AMQP 0-10 that the broker takes",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class QpidCpp(Qpid):
    """Numbers of Qpid C++ (qpidd) for AMQP 0-10; what a 1.0 client meets is as the specification.

    A listener with this preset makes every queue as qpidd does.
    """

    name: str = "qpid-cpp"
    title: str = "Qpid C++ (AMQP 0-10)"
    product: str = "qpid-cpp"
    version: str = "1.39.0"

    default_queue_limit: int = _number(
        104_857_600,
        unit="octets",
        source="qpidd default-queue-limit: 100 MiB",
        doc="what a queue may hold that is declared without qpid.max_size; a message beyond it ends"
        " the session with resource-limit-exceeded (506)",
    )
    flow_stop_percent: int = _number(
        80,
        unit="per cent of the queue's maximum",
        source="qpidd default-flow-stop-threshold",
        doc="above so much a queue holds completions back, unless it names a threshold",
    )
    flow_resume_percent: int = _number(
        70,
        unit="per cent of the queue's maximum",
        source="qpidd default-flow-resume-threshold",
        doc="below so much it lets them go again",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerJ(Qpid):
    """Numbers of Qpid's Java broker: it holds sessions, and links of 1.0, by credit."""

    name: str = "broker-j"
    title: str = "Qpid Broker-J (AMQP 0-10 and 1.0)"
    conduct: str = BROKER_J
    protocols: tuple[str, ...] = (AMQP_1_0, AMQP_0_10)
    product: str = "qpid-broker-j"
    version: str = "9.2.0"

    publisher_credit: int = _number(
        20_000,
        unit="messages",
        source="Broker-J NodeReceivingDestination.getCredit",
        doc="largest link-credit that the broker grants to a publisher of AMQP 1.0, less what it"
        " has not settled",
    )
    publisher_credit_regrant_at: int | None = _number(
        None,
        unit="messages",
        source="Broker-J AbstractLinkEndpoint.sendFlowConditional: half of what was told is used",
        doc="the broker grants a publisher again when no more than this is left; None: half of"
        " publisher_credit less what it has not settled",
    )
    incoming_window: int = _number(
        16_384,
        unit="transfer frames",
        source="Broker-J connection.sessionCreditWindowSize",
        doc="how many transfer frames the broker takes on a session before it says more",
    )
    incoming_window_regrant_at: int | None = _number(
        None,
        unit="transfer frames",
        source="Broker-J Session_1_0.sendFlowConditional: half of it is used",
        doc="the broker opens its incoming-window again when no more than this is left; None: half"
        " of incoming_window",
    )
    producer_credit: int = _number(
        INT_MAX,
        unit="messages",
        source="Broker-J ServerSession.invokeUnblock: Integer.MAX_VALUE",
        doc="what message.flow gives a session of AMQP 0-10 that may send again",
    )

    flow_resume_limit: int = _number(
        80,
        unit="per cent of the queue's maximum",
        source="Broker-J queue.queueFlowResumeLimit",
        doc="sessions and links that a queue above its maximum holds may send again when it has no"
        " more than this, rounded up",
    )
