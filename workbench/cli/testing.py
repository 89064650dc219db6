"""A run as a small pytest file: the same run, and what was chosen to be true of it."""

from __future__ import annotations

import pprint
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from .console import CommandError, UsageError, suggestion

HASH, NO_OVERRUN, BLOCKED, ARRIVED = "hash", "no-overrun", "blocked", "arrived"
STANDARD = (NO_OVERRUN, HASH)
"""What is expected where nothing was chosen."""

_HEAD = '''"""A run kept as a test: {title}.

Written by `workbench export`. A run is a pure function of what stands here.
"""

{imports}

RUN = run(
    {scenario!r},
    {preset},
    {parameters},
    {actions},
    seed={seed},
)
'''


class Expected(NamedTuple):
    """One thing that a test expects of a run: the imports it needs, and its text."""

    imports: Sequence[str]
    text: str


def _hash(run: Any, _value: str) -> Expected:
    from workbench.trace.hash import trace_hash

    text = f'''
def test_the_run_goes_as_it_went() -> None:
    """Row by row; another version of the broker may differ here and still be right."""
    assert trace_hash(RUN.rows) == (
        {trace_hash(run.rows)!r}
    )
'''
    return Expected(["from workbench.trace.hash import trace_hash"], text)


def _no_overrun(run: Any, _value: str) -> Expected:
    from workbench.folds.violations import violations

    found = violations(run.rows)
    if found:
        first = found[0]
        raise CommandError(
            f"--expect {NO_OVERRUN}: row {first['seq']} of this run is {first['what']}"
            f" [{first['clause']}], and so are {len(found) - 1} more: a test of it would fail"
        )
    text = '''
def test_no_frame_goes_beyond_credit_or_window() -> None:
    """Nor breaks another rule that a trace can show [2.5.6, 2.6.7]."""
    assert violations(RUN.rows) == []
'''
    return Expected(["from workbench.folds.violations import violations"], text)


def _blocked(run: Any, brake: str) -> Expected:
    from workbench.folds.stalls import stalls

    held: dict[str, int] = {}
    for stall in stalls(run.rows):
        held[stall.brake] = held.get(stall.brake, 0) + stall.end_us - stall.start_us
    if brake not in held:
        raise UsageError(
            f"--expect {BLOCKED}={brake}: nobody with something to send was blocked by that in"
            f" this run{suggestion(brake, held)}"
        )
    name = brake.replace("-", "_")
    text = f'''
def test_blocked_by_{name}_for_so_long() -> None:
    """Microseconds in which a sender had something to send and {brake} held it."""
    held = sum(one.end_us - one.start_us for one in stalls(RUN.rows) if one.brake == {brake!r})
    assert held == {held[brake]:_}
'''
    return Expected(["from workbench.folds.stalls import stalls"], text)


def _arrived(run: Any, _value: str) -> Expected:
    def whole(row: Any) -> bool:
        return (
            row.event == "received"
            and row.kind in ("transfer", "basic.deliver", "message.transfer")
            and not (row.frame or {}).get("more")
        )

    number = sum(whole(row) for row in run.rows)
    text = f'''
def test_so_many_messages_arrive() -> None:
    """Transfers that end a message, and deliveries, counted where they are received."""
    kinds = ("transfer", "basic.deliver", "message.transfer")
    arrived = [
        row for row in RUN.rows
        if row.event == "received" and row.kind in kinds and not (row.frame or {{}}).get("more")
    ]
    assert len(arrived) == {number}
'''
    return Expected([], text)


_KINDS: dict[str, Callable[[Any, str], Expected]] = {
    HASH: _hash,
    NO_OVERRUN: _no_overrun,
    BLOCKED: _blocked,
    ARRIVED: _arrived,
}
EXPECTS = f"{HASH}, {NO_OVERRUN}, {ARRIVED}, {BLOCKED}=BRAKE"


def as_test(run: Any, expects: Sequence[str] = ()) -> str:
    """The text of a pytest file that plays a run and expects something of it.

    Args:
        run: the run; one with a learner's own functions cannot be written down.
        expects: of `hash`, `no-overrun`, `arrived` and `blocked=BRAKE`; the first two if empty.

    Raises:
        CommandError: if one of them is unknown, or not true of this run.
    """
    if run.code:
        names = ", ".join(sorted(run.code))
        raise CommandError(f"the run uses code of your own ({names}): a test cannot hold it")
    found = []
    for text in expects or STANDARD:
        kind, _, value = text.partition("=")
        if kind not in _KINDS or (kind == BLOCKED) != bool(value):
            raise UsageError(f"--expect {text}: legal: {EXPECTS}")
        found.append(_KINDS[kind](run, value))
    given = run.identity()
    preset = repr(given["preset"])
    imports = {"from workbench.scenarios import Action, run"}
    for one in found:
        imports.update(one.imports)
    before = ""
    if given["preset_changes"]:
        before = "from dataclasses import replace\n\n"
        imports.add("from workbench import presets")
        changes = ", ".join(f"{key}={value!r}" for key, value in given["preset_changes"].items())
        preset = f"replace(presets.get({preset}), {changes})"
    head = _HEAD.format(
        title=run.scenario.title,
        imports=before + "\n".join(sorted(imports)),
        scenario=run.scenario.name,
        preset=preset,
        parameters=_shown(dict(run.parameters)),
        actions="[" + "".join(f"\n        {_action(one)}," for one in run.actions) + "\n    ]"
        if run.actions
        else "[]",
        seed=run.seed,
    )
    return "\n".join([head, *(one.text for one in found)])


def _action(action: Any) -> str:
    return (
        f"Action(after_seq={action.after_seq}, name={action.name!r},"
        f" arguments={dict(action.arguments)!r})"
    )


def _shown(value: dict[str, Any]) -> str:
    return pprint.pformat(value, width=88, sort_dicts=False).replace("\n", "\n    ")


__all__ = ["EXPECTS", "as_test"]
