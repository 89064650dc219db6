"""Lesson 04 asked again: the same questions over runs with other numbers.

The numbers here are what is put in, never what comes out.
"""

from __future__ import annotations

from workbench.scenarios.run import Run, run

from .question import Question
from .recall import register
from .windows_predict import LESSON, consumers, express, held, stops_at, worked_out
from .windows_runs import GENEROUS, PRESET

# How many different forms there are before they begin anew.
FORMS = 20


def _small(form: int) -> int:
    """A small window, different from form to form and never 0 or 1, which beliefs answer."""
    return 2 + form % FORMS


@register(LESSON, "stops-at")
def _stops_at(form: int) -> Question:
    window = _small(form)
    given = {
        "messages": 1,
        "message_bytes": 480 * (window + 4),
        "max_frame_size": 512,
        "client_window": window,
    }
    return stops_at.question(run("windows", PRESET, given), link_credit=1)


@register(LESSON, "worked-out")
def _worked_out(form: int) -> Question:
    frames = _small(form)
    given = {
        "messages": 4 * frames,
        "client_window": 2 * frames,
        "link_credit": 4 * frames,
        "broker_first_id": 10 * frames,
        "latency_us": 100 * frames,
    }
    return worked_out.question(run("windows", PRESET, given), number=frames, frames=frames + 1)


@register(LESSON, "held")
def _held(form: int) -> Question:
    window = _small(form)
    given = {"messages": 500, "client_window": window, "link_credit": GENEROUS}
    return held.question(run("windows", PRESET, given))


@register(LESSON, "consumers")
def _consumers(form: int) -> Question:
    return consumers.question(_both_ways(form), link_credit=_small(form))


@register(LESSON, "express")
def _express(form: int) -> Question:
    window = _small(form)
    given = {"messages": 5 * window, "client_window": window + 3, "link_credit": 5 * window}
    return express.question(run("windows", PRESET, {**given, "express": window}))


def _both_ways(form: int) -> Run:
    return run("windows", PRESET, {"publisher": True, "messages": 3 * _small(form)})
