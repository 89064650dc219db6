"""Who looks on: called when something has changed, as long as they are there."""

from __future__ import annotations

from collections.abc import Callable
from weakref import WeakMethod


class Watchers:
    """Bound methods, none of which keeps its object alive."""

    def __init__(self) -> None:
        self._methods: list[WeakMethod[Callable[[], None]]] = []

    def add(self, method: Callable[[], None]) -> None:
        """Call this method, too, as long as its object is there."""
        self._methods.append(WeakMethod(method))

    def tell(self) -> None:
        """Call every method."""
        self._methods = [one for one in self._methods if one() is not None]
        for method in [one() for one in self._methods]:
            if method is not None:
                method()
