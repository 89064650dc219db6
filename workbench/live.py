"""A live broker with its trace: what `serve` in a notebook and on the command line start.

The broker (`net`) knows no trace and the trace knows no sockets; they are joined here.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.amqp.performatives import SaslInit, SaslResponse
from workbench.net import LiveBroker
from workbench.net.recording import Recording, Spool
from workbench.trace.taps import Recorder

if TYPE_CHECKING:
    from workbench.presets import Preset
    from workbench.trace.schema import Row

RUN = "live"


class LiveRecorder(Recorder):
    """A recorder that keeps no secret: what a client answers in SASL is recorded as zeros."""

    def sent(self, end: Any, flight: Any) -> None:
        """`end` has sent the frame."""
        super().sent(end, _without_secret(flight))

    def received(self, end: Any, flight: Any) -> None:
        """`end` has applied the frame."""
        super().received(end, _without_secret(flight))


def _without_secret(flight: Any) -> Any:
    performative = getattr(flight.item, "performative", None)
    if isinstance(performative, SaslInit):
        secret = performative.initial_response
        if not secret:
            return flight
        performative = dataclasses.replace(performative, initial_response=bytes(len(secret)))
    elif isinstance(performative, SaslResponse):
        performative = dataclasses.replace(performative, response=bytes(len(performative.response)))
    else:
        return flight
    item = dataclasses.replace(flight.item, performative=performative)
    return dataclasses.replace(flight, item=item, octets=None)


def recording(folder: str | os.PathLike[str] | None = None, run: str = RUN) -> Recording:
    """A recording for a live broker.

    Args:
        folder: where its rows go as Parquet files; None keeps the latest in memory only.
        run: name of the run; the files' names begin with it.
    """

    def make_tap(now: Callable[[], int], sink: Callable[[Row], None]) -> LiveRecorder:
        return LiveRecorder(run, now=now, sink=sink, keep=False)

    spool = None
    if folder is not None:
        from workbench.trace import files

        spool = Spool(Path(folder), run, files.write)
    return Recording(make_tap, spool=spool)


def serve(
    preset: Preset | str = "spec",
    *,
    trace: str | os.PathLike[str] | None = None,
    record: bool = True,
    run: str = RUN,
    **more: Any,
) -> LiveBroker:
    """Start a broker that listens, by default on a free port of loopback.

    Its trace fills while it runs: `stepper(broker.rows())` opens it. End it with `broker.stop()`,
    or use it as a context manager.

    Args:
        preset: a preset or its name.
        trace: a folder for the whole trace as Parquet files.
        record: False to record nothing, which is several times faster.
        run: name of the run in the trace.
        more: see `LiveBroker`: host, port, limits, users, tls, allow_remote, queues.

    Raises:
        ListenError: if it cannot be started as asked.
    """
    kept = recording(trace, run) if record or trace is not None else None
    try:
        return LiveBroker(preset, recording=kept, **more)
    except BaseException:
        if kept is not None:
            kept.close()
        raise
