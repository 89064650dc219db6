"""channel.flow from the broker: how RabbitMQ before 2.0.0 asked publishers to stop in an alarm.

1.5.0 asks each channel and believes what it is told: flow-ok is not looked at, and what is
published is taken. 1.8.0 watches: who does not answer within ten seconds, answers the wrong way or
publishes after its flow-ok of active = false is closed, and a channel that opens meanwhile waits
for its open-ok (`rabbit_channel.erl`: conserve_memory, flow_control, issue_flow).
"""

from __future__ import annotations

from collections.abc import Callable

from workbench.amqp091.errors import ReplyCode
from workbench.amqp091.methods import ChannelFlow, ChannelFlowOk, Method
from workbench.presets import Preset
from workbench.sim import Clock, Timer

from .faults import RefusedError, unimplemented

READER, FLOW, ENFORCED = "reader", "flow", "enforced-flow"


class PublisherFlow:
    """What one channel's publisher has been asked, and has answered.

    Args:
        clock: of the run.
        preset: how an alarm holds publishers, and how long an answer may take.
        send: sends a method on the channel, if that is open.
        refuse: ends the channel or the connection.

    Attributes:
        opening: answers the channel's open, when the alarm is over.
    """

    def __init__(
        self,
        clock: Clock,
        preset: Preset,
        send: Callable[[Method], None],
        refuse: Callable[[RefusedError], None],
    ) -> None:
        self.opening: Callable[[], None] | None = None
        self._clock = clock
        self._brake = preset.alarm_brake
        self._patience_us = preset.flow_ok_us
        self._send = send
        self._refuse = refuse
        self._wanted = True  # by the broker: active
        self._agreed = True  # by the client's last flow-ok
        self._pending: Timer | None = None

    def alarm(self, on: bool) -> None:
        """An alarm has begun, or the last one is over."""
        if self.opening is not None:
            if not on:
                opening, self.opening = self.opening, None
                opening()
            return
        if self._brake == FLOW:
            self._send(ChannelFlow(active=not on))
        elif self._brake == ENFORCED:
            changes = self._wanted is on
            self._wanted = not on
            if changes and self._pending is None:
                self._ask()

    def opens(self, answer: Callable[[], None], alarmed: bool) -> None:
        """The channel opens, perhaps under an alarm."""
        if alarmed and self._brake == ENFORCED:
            self.opening = answer
            return
        answer()
        if alarmed:
            self.alarm(True)

    def answered(self, method: ChannelFlowOk) -> None:
        """The client has answered.

        Raises:
            RefusedError: nobody had asked, or not that.
        """
        if self._brake not in (FLOW, ENFORCED):
            raise unimplemented()
        if self._brake == FLOW:
            return
        if self._pending is None:
            raise RefusedError(ReplyCode.COMMAND_INVALID, "unsolicited channel.flow_ok")
        if method.active is self._agreed:
            raise RefusedError(
                ReplyCode.COMMAND_INVALID,
                f"received channel.flow_ok{{active={_erlang(method.active)}}} has incorrect"
                " polarity",
            )
        self.end()
        self._agreed = method.active
        if self._wanted is not method.active:  # the alarm has come or gone meanwhile
            self._ask()

    def publishing(self) -> None:
        """The client publishes.

        Raises:
            RefusedError: it has said that it would not.
        """
        if self._brake == ENFORCED and not self._agreed:
            raise RefusedError(
                ReplyCode.COMMAND_INVALID,
                "basic.publish received after channel.flow_ok{active=false}",
            )

    def end(self) -> None:
        """Nobody waits for an answer any more."""
        if self._pending is not None:
            self._pending.cancel()
            self._pending = None

    def _ask(self) -> None:
        self._send(ChannelFlow(active=self._wanted))
        self._pending = self._clock.call_later(self._patience_us, self._too_late, self._wanted)

    def _too_late(self, asked: bool) -> None:
        self._pending = None
        self._refuse(
            RefusedError(
                ReplyCode.PRECONDITION_FAILED,
                f"timeout waiting for channel.flow_ok{{active={_erlang(asked)}}}",
            )
        )


def _erlang(truth: bool) -> str:
    return "true" if truth else "false"
