"""A live broker or proxy with its trace: what `serve` in a notebook and on the command line start.

The other modules of this package know no trace, and the trace knows no sockets; they are joined
here.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, overload

from msgspec.structs import replace

from workbench import notebook
from workbench.presets import Preset
from workbench.trace.given import Place, takes
from workbench.trace.schema import OBSERVED, Row
from workbench.trace.secret_fields import without_secret
from workbench.trace.taps import Recorder, flat_item

from .passing import Opaque
from .proxy import LiveProxy
from .recording import Recording, Spool
from .server import LiveBroker
from .socket_server import ListenError

RUN = "live"


class LiveRecorder(Recorder):
    """A recorder that keeps no secret: what peers prove themselves with is recorded as zeros.

    Of a proxy's wire a frame is recorded once, as observed, when it has passed the gate.
    """

    def sent(self, end: Any, flight: Any) -> None:
        """`end` has sent the frame."""
        if end.ledger_source != OBSERVED:
            super().sent(end, _without_secret(flight))

    def received(self, end: Any, flight: Any) -> None:
        """`end` has applied the frame."""
        if end.ledger_source != OBSERVED:
            super().received(end, _without_secret(flight))
        elif isinstance(flight.item, Opaque):
            self._unread(end, flight)
        else:
            flight = _without_secret(flight)
            self._frame(end, flight, OBSERVED, flat_item(flight.item), flight.arrives_us)

    def _unread(self, end: Any, flight: Any) -> None:
        """Octets that were passed on although nobody could read them; they are not kept."""
        self.internal(
            t_us=flight.arrives_us,
            event="error",
            vantage=end.vantage,
            connection=flight.connection,
            extra={
                "from_peer": "client" if end.from_peer == "broker" else "broker",
                "octets": flight.item.size,
                "text": f"passed on unread: {flight.item.why}",
            },
        )


def _without_secret(flight: Any) -> Any:
    for part in ("performative", "payload", "content"):  # of AMQP 1.0, 0-9-1 and 0-10
        said = getattr(flight.item, part, None)
        clean = without_secret(said)
        if clean is not said:
            return replace(flight, item=replace(flight.item, **{part: clean}), octets=None)
    return flight


def recording(folder: Place | None = None, run: str = RUN) -> Recording:
    """A recording for a live broker.

    Args:
        folder: where its rows go as Parquet files; None keeps the latest in memory only.
        run: name of the run; the files' names begin with it. Where the folder has one of that name
            it gets a number.

    Raises:
        ListenError: a file has the folder's name, or it cannot be made.
    """

    def make_tap(now: Callable[[], int], sink: Callable[[Row], None]) -> LiveRecorder:
        return LiveRecorder(run, now=now, sink=sink, keep=False)

    spool = None
    if folder is not None:
        from workbench.trace import files

        folder = Path(folder)
        if folder.exists() and not folder.is_dir():
            raise ListenError(f"{folder}: is a file; a trace takes a folder")
        first, number = run, 1
        while (folder / f"{run}-00001.parquet").exists():  # of another server: its rows stay
            number += 1
            run = f"{first}-{number}"
        try:
            spool = Spool(folder, run, files.to_table, files.write_tables, prepare=files.prepare)
        except OSError as error:
            raise ListenError(f"{error.filename or folder}: {files.reason(error)}") from None
    return Recording(make_tap, spool=spool)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Broker:
    """A broker to be served: which one, and what is in it from the beginning.

    Attributes:
        preset: a preset or its name.
        queues: names of its queues.
    """

    preset: Preset | str = "spec"
    queues: tuple[str, ...] = ()

    def serve(self, **more: Any) -> LiveBroker:
        """Start it behind a socket; arguments as of `serve`."""
        server: LiveBroker = serve(self.preset, queues=self.queues, **more)
        return server


@overload
def serve(
    preset: Preset | str = "spec", *, forward: None = None, queues: Iterable[str] = (), **more: Any
) -> LiveBroker: ...


@overload
def serve(preset: Preset | str = "spec", *, forward: str, **more: Any) -> LiveProxy: ...


@takes
def serve(
    preset: Preset | str = "spec",
    *,
    forward: str | None = None,
    queues: Iterable[str] | str = (),  # a text is refused, with what was meant
    trace: Place | None = None,
    record: bool = True,
    run: str = RUN,
    **more: Any,
) -> LiveBroker | LiveProxy:
    """Start a broker that listens, by default on a free port of loopback; or a proxy.

    Its trace fills while it runs: `stage(broker.rows())` draws it, and `frozen_wire(broker)`
    holds its frames. End it with `broker.stop()`, or use it as a context manager. A notebook's
    cell that is run again stops what it has started before.

    Args:
        preset: a preset or its name.
        forward: no broker of ours, but a proxy in front of this one: `host:port`,
            `amqp://host:port` or `amqps://host:port`.
        queues: names of queues that are there from the beginning.
        trace: a folder for the whole trace as Parquet files.
        record: False to record nothing, which is several times faster.
        run: name of the run in the trace; see `recording`.
        more: see `LiveBroker` and `LiveProxy`: host, port, limits, users, tls, allow_remote, trust.

    Raises:
        ListenError: if it cannot be started as asked.
    """
    here = _cell()
    if here is not None and here in _STARTED:
        _STARTED.pop(here).stop()
    if forward is not None and (queues or more.get("users")):
        raise ListenError("queues and users are the other broker's; legal with forward: neither")
    kept = recording(trace, run) if record or trace is not None else None
    server: LiveBroker | LiveProxy
    try:
        if forward is None:
            server = LiveBroker(preset, recording=kept, queues=queues, **more)
        else:
            server = LiveProxy(forward, recording=kept, **more)
    except BaseException:
        if kept is not None:
            kept.close()
        raise
    if here is not None:
        _STARTED[here] = server
    return server


_STARTED: dict[str, LiveBroker | LiveProxy] = {}
"""The latest server of each notebook cell: running a cell again must not leave the first behind."""


def _cell() -> str | None:
    """The notebook cell that runs now, by its id where the front end tells it, or by its code.

    None outside a notebook.
    """
    if notebook.kernel_shell() is None:
        return None
    told = notebook.cell_id()
    if told is not None:
        return told
    frame = sys._getframe().f_back
    while frame is not None:
        name = frame.f_code.co_filename
        if frame.f_code.co_name == "<module>" and frame.f_globals.get("__name__") == "__main__":
            return name if "ipykernel_" in name or "ipython-input" in name else None
        frame = frame.f_back
    return None
