"""The reference reader of a StepperDoc: what stepper.js does, in Python.

Stills are made from it, and the tests hold it against the fold of the trace.
"""

from __future__ import annotations

from typing import Any

from .pack import expand, unpatch
from .stepper_doc import ARRIVES, DEPARTS, FORMAT, HELD, VERSION

UNSET = object()  # a counter nobody has mentioned yet; None is `?`, a counter that cannot be known


class Reader:
    """Steps through a document; step k is the state after k rows, step 0 the start.

    Args:
        doc: a StepperDoc.

    Raises:
        ValueError: if it is a document of another version.
    """

    def __init__(self, doc: dict[str, Any]) -> None:
        if doc.get("format") != FORMAT or doc.get("version") != VERSION:
            raise ValueError(
                f"this reader takes {FORMAT} version {VERSION}, not version {doc.get('version')!r}"
            )
        self.doc = doc
        self._octets = [frame[3] if len(frame) > 3 else "" for frame in doc["frames"]]
        self.rewind()

    def __len__(self) -> int:
        return len(self.doc["rows"])

    def rewind(self) -> None:
        """Back to the start."""
        self.step = 0
        self.t_us: int = self.doc["t0_us"]
        self.cells: list[Any] = [UNSET] * self.doc["cells"]
        self.flights: dict[int, bool] = {}
        self._pairs(self.doc["start"]["cells"], self.cells.__setitem__)
        self._pairs(self.doc["start"]["flights"], self._hold)

    def go(self, step: int) -> Reader:
        """To the state after `step` rows."""
        if step < self.step:
            self.rewind()
        while self.step < step:
            self._apply(self.doc["rows"][self.step])
        return self

    def row(self, step: int) -> list[Any]:
        """Row number `step` (from 1), with its empty columns filled in."""
        row = self.doc["rows"][step - 1]
        return row + [0, 0, 0, [], 0, [], 0, []][len(row) :]

    def sentence(self, step: int) -> str:
        """What happened at a step, in words."""
        return self.text(self.row(step)[4]) if step else "The start: nothing has happened yet."

    def text(self, ref: Any) -> str:
        """The text a reference stands for; empty for none."""
        return expand(self.doc["texts"], ref) if ref else ""

    def octets(self, frame: int) -> bytes:
        """The frame's octets, as far as the document keeps them."""
        stored = self._octets[frame]
        return unpatch(stored, self._octets) if stored else b""

    def fields(self, frame: int) -> list[tuple[str, str, str, int, int, str]]:
        """(path, type, constructor, start, end, value) of each field; -1 where no octets are."""
        packed = self.doc["frames"][frame]
        if len(packed) < 5 or not packed[4]:
            return []
        layout = self.doc["layouts"][packed[4] - 1]
        values = [field[5] for field in layout]
        if len(packed) > 5:
            self._pairs(packed[5], values.__setitem__)
        return [(*field[:5], str(value)) for field, value in zip(layout, values, strict=True)]

    def frame_words(self, frame: int) -> str:
        """Kind, way and what the frame carries."""
        packed = self.doc["frames"][frame]
        head = self.doc["frame_heads"][packed[0]]
        ends = [self.doc["lanes"][lane][0] for lane in head[2:4]]
        return f"{head[0]} ({self.text(packed[1])}) {ends[0]} → {ends[1]}"

    def _apply(self, row: list[Any]) -> None:
        self.step += 1
        row = self.row(self.step)
        self.t_us += row[1]
        self._pairs(row[3], self.cells.__setitem__)
        operation, frame = self.doc["heads"][row[0]][7], row[2] - 1
        if operation == DEPARTS:
            self.flights[frame] = False
        elif operation == ARRIVES:
            self.flights.pop(frame, None)
        self._pairs(row[7], lambda what, which: self._hold(which, what == HELD))

    def _hold(self, frame: int, held: Any) -> None:
        self.flights[frame] = bool(held)

    @staticmethod
    def _pairs(flat: Any, use: Any) -> None:
        for key, value in zip(flat[::2], flat[1::2], strict=True):
            use(key, value)
