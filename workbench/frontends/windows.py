"""The incoming-windows of the broker's sessions, and how alarms close them.

A window is told in the begin and opened again when half of it is used. While a resource alarm is on
every window is 0 and stays so; new sessions begin with 0. What a client had under way when it heard
of this still comes, so the broker takes `alarm_margin` frames more before it ends the session with
window-violation; of a session that begins with 0 it takes none. An alarm touches nothing else:
flows, dispositions and what the broker sends go on (`rabbit_amqp_session.erl`).
"""

from __future__ import annotations

from dataclasses import replace

from workbench.amqp10.session import Session
from workbench.amqp10.settings import SessionSettings
from workbench.presets import Preset

from .session_policy import SessionPolicy


class Windows:
    """Opens and closes the windows of one connection's sessions.

    Args:
        preset: window, when it is opened again, and how much is tolerated.
        policy: how frames are written, and links numbered.
    """

    def __init__(self, preset: Preset, policy: SessionPolicy) -> None:
        self.open = SessionSettings(
            next_outgoing_id=preset.initial_next_outgoing_id,
            incoming_window=preset.incoming_window,
            outgoing_window=preset.outgoing_window,
            regrant_at=preset.window_regrant_at,
            handle_max=preset.handle_max,
            full_transfers=policy.full_transfers,
            write_more=preset.writes_defaults,
            transfer_reserve=preset.transfer_reserve,
        )
        self._closed = replace(self.open, incoming_window=0, regrant_at=None)
        self._margin = preset.alarm_margin
        self._one_handle_max = policy.numbers_as_client

    def begin(self, session: Session, *, closed: bool, channel: int | None) -> None:
        """Answer the client's begin; `closed`: an alarm is on."""
        settings = self._closed if closed else self.open
        if self._one_handle_max:
            highest = min(settings.handle_max, session.remote_handle_max)
            settings = replace(settings, handle_max=highest)
        session.accept(settings, channel=channel)

    def shut(self, session: Session) -> None:
        """An alarm begins."""
        self._set(session, self._closed)
        session.counters.tolerate(self._margin)
        self._tell(session)

    def reopen(self, session: Session) -> None:
        """The last alarm is over."""
        self._set(session, self.open)
        self._tell(session)

    def _set(self, session: Session, settings: SessionSettings) -> None:
        session.settings = replace(settings, handle_max=session.settings.handle_max)

    def _tell(self, session: Session) -> None:
        session.set_incoming_window(session.settings.incoming_window)
        if session.can_emit():
            session.flow()
