"""How much work something is, without a clock."""

import sys
from collections.abc import Callable
from typing import Any


def steps(answer: Callable[[Any], object], given: Any) -> int:
    """Lines of Python that an answer takes."""
    taken = 0

    def traced(_frame, event, _about):
        nonlocal taken
        taken += event == "line"
        return traced

    before = sys.gettrace()
    sys.settrace(traced)
    try:
        answer(given)
    finally:
        sys.settrace(before)
    return taken
