"""What may hold a sender under each preset, as one table: a page for people, made from the presets.

python -m workbench.presets.brakes docs/brakes.md
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import get, names
from .qpid import BrokerJ, QpidCpp
from .specification import AMQP_0_9_1, AMQP_0_10, AMQP_1_0, BROKER_J, RABBITMQ, SPEC, Preset

HEAD = """# What holds a sender

What may hold a sender under each preset of this project: where the brake is, its number, and what
the sender is told. The table is generated from the presets
(`python -m workbench.presets.brakes docs/brakes.md`); a test compares the two. The source of each
number stands beside it in `workbench/presets`; what was compared with a real broker is in
[fidelity.md](fidelity.md).
"""
TAIL = """
**How to read it.** A *–* means that the preset has no such brake, or no protocol that has it.
*Says* is what goes to the sender over the wire: a number beforehand (credit, a window), a word that
is held back (a completion), or nothing at all (a socket that is not read). A number beforehand
bounds what the broker holds. A word that is held back bounds it by the client's own window, which
the broker does not know.
"""

_ABSENT = "–"
_QUORUM_QUEUES_SINCE = (3, 8)
_ASKED = {
    "flow": ": channel.flow, which nobody enforces",
    "enforced-flow": ": channel.flow, and a connection that goes on is closed",
}


def _release(preset: Preset) -> tuple[int, ...]:
    return tuple(int(part) for part in preset.version.split(".")[:2])


def _half(value: int | None, of: int) -> int:
    return of // 2 if value is None else value


def _link_credit(preset: Preset) -> str:
    if preset.conduct == SPEC:
        return f"{preset.publisher_credit}, again at what its receiver chooses"
    again = _half(preset.publisher_credit_regrant_at, preset.publisher_credit)
    unsettled = " less the unsettled" if preset.conduct == BROKER_J else ""
    return f"{preset.publisher_credit}{unsettled}, again at {again}"


def _unconfirmed(preset: Preset) -> str:
    if not preset.confirms_gate_credit:
        return _ABSENT
    return f"no further credit with {preset.publisher_credit} unconfirmed"


def _window(preset: Preset) -> str:
    again = _half(preset.incoming_window_regrant_at, preset.incoming_window)
    return f"{preset.incoming_window} frames, again at {again}"


def _if(has: Callable[[Any], object], text: str) -> Callable[[Any], str]:
    """What a preset `p` that has a brake says of it, its numbers in braces."""
    return lambda preset: text.format(p=preset) if has(preset) else _ABSENT


def _is(kind: type[Preset], text: str) -> Callable[[Any], str]:
    return _if(lambda preset: isinstance(preset, kind), text)


def _soft(preset: Preset) -> str:
    # 3.5.5's number is for a run that asks for a quorum queue all the same: the release had none.
    if preset.conduct != RABBITMQ or _release(preset) < _QUORUM_QUEUES_SINCE:
        return _ABSENT
    return f"{preset.quorum_soft_limit} commands pending"


def _alarm(preset: Preset) -> str:
    if preset.conduct != RABBITMQ:
        return _ABSENT
    mark = preset.memory_high_watermark
    said = _ASKED.get(preset.alarm_brake, "" if preset.tells_blocked else ": nothing is said")
    return (f"above {mark:g} of the memory" if mark <= 1 else f"above {mark:,} octets") + said


_Column = tuple[str, str, str | None, Callable[[Any], str]]
COLUMNS: tuple[_Column, ...] = (
    ("link credit", "a number beforehand, link by link", AMQP_1_0, _link_credit),
    ("unconfirmed", "no further credit", AMQP_1_0, _unconfirmed),
    ("session window", "a number beforehand, session by session", AMQP_1_0, _window),
    ("the session's buffer", "nothing: the consumer's credit is passed on in parts", AMQP_1_0,
     _if(lambda p: p.max_queue_credit, "{p.max_queue_credit} messages a consumer")),
    ("credit_flow between processes", "nothing: the socket is not read", AMQP_0_9_1,
     _if(lambda p: p.process_credit,
         "{p.process_credit} messages a hop, {p.process_regrant_after} a grant")),
    ("message store", "nothing: the socket is not read", AMQP_0_9_1,
     _if(lambda p: p.process_credit,  # before credit_flow.erl there is none of either kind
         "{p.store_credit} messages, {p.store_regrant_after} a grant")),
    ("soft limit of quorum queues", "nothing: a channel stops granting", AMQP_0_9_1, _soft),
    ("memory alarm", "a closed window; connection.blocked", None, _alarm),
    ("watermarks", "no completion", AMQP_0_10,
     _is(QpidCpp, "above {p.flow_stop_percent} %, until below {p.flow_resume_percent} % of a"
                  " queue's limit")),
    ("credit taken away", "0-10: set-flow-mode and stop, then flow, to the session; 1.0:"
     " link-credit 0 with drain, then credit, to each link", AMQP_0_10,
     _is(BrokerJ, "above a queue's maximum, until at {p.flow_resume_limit} % of it")),
    ("hard limit", "an exception: the session ends", AMQP_0_10,
     _is(QpidCpp, "{p.default_queue_limit:,} octets a queue")),
)  # fmt: skip
"""Brake, what it says to the sender, the protocol that it is of (None: any), and its number."""


def cells(preset: Preset) -> list[str]:
    """What each brake is under a preset, in the order of `COLUMNS`."""
    return [
        told(preset) if protocol is None or protocol in preset.protocols else _ABSENT
        for _, _, protocol, told in COLUMNS
    ]


def markdown() -> str:
    """The page."""
    presets = [get(name) for name in names()]
    lines = [
        "| preset | speaks | " + " | ".join(name for name, *_ in COLUMNS) + " |",
        "|---" * (len(COLUMNS) + 2) + "|",
        "| *says* | | " + " | ".join(f"*{says}*" for _, says, *_ in COLUMNS) + " |",
    ]
    for preset in presets:
        spoken = ", ".join(name.removeprefix("amqp-") for name in preset.protocols)
        lines.append(f"| `{preset.name}` | {spoken} | " + " | ".join(cells(preset)) + " |")
    return "\n".join([HEAD, *lines, TAIL])


def main(path: str) -> None:
    """Write the page."""
    Path(path).write_text(markdown(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
