"""Packing loses nothing: texts, octets and values come back as they were."""

from __future__ import annotations

import base64

from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.views.pack import Octets, Table, Texts, expand, patch, trimmed, unpatch

words = st.text(st.sampled_from("ab 0123456789.−{}<>%s\n…"), max_size=40)


@settings(derandomize=True, max_examples=200, deadline=None)
@given(st.lists(words, max_size=8))
def test_a_text_comes_back_from_its_template_and_numbers(texts: list[str]) -> None:
    """Every digit of every text survives, leading zeros and very long numbers too."""
    table = Texts()
    refs = [table.ref(text) for text in texts]
    assert [expand(table.templates, ref) for ref in refs] == texts


def test_texts_that_differ_only_in_numbers_share_a_template() -> None:
    """That is what keeps a thousand sentences small."""
    table = Texts()
    refs = [table.ref(f"delivery {n}: {3 - n} credits left") for n in range(3)]
    assert refs == [[0, 0, 3], [0, 1, 2], [0, 2, 1]]
    assert len(table.templates) == 1


def test_a_number_that_javascript_cannot_hold_stays_text() -> None:
    """2**53 + 1 would come back changed, 007 would come back as 7."""
    table = Texts()
    assert table.ref("007 and 90071992547409931234") == [0]


@settings(derandomize=True, max_examples=200, deadline=None)
@given(st.binary(max_size=60), st.data())
def test_a_patch_turns_the_old_octets_into_the_new(old: bytes, data: st.DataObject) -> None:
    """Patches name offset and new octets; what they do not name is unchanged."""
    new = data.draw(st.binary(min_size=len(old), max_size=len(old)))
    whole = base64.b64encode(old).decode()
    assert unpatch([0, *patch(old, new)], [whole]) == new


@settings(derandomize=True, max_examples=100, deadline=None)
@given(st.lists(st.binary(min_size=24, max_size=26), max_size=20))
def test_octets_come_back_whatever_came_before(frames: list[bytes]) -> None:
    """A frame is stored whole, or as patches to one that is stored whole."""
    octets = Octets()
    stored = [octets.store(place, raw, "transfer") for place, raw in enumerate(frames)]
    assert [unpatch(item, stored) for item in stored] == frames


def test_frames_alike_are_stored_as_patches() -> None:
    """The second frame costs only the octets in which it differs."""
    octets = Octets()
    first, second = bytes(40), bytes(20) + b"\x07" + bytes(19)
    octets.store(0, first, "flow")
    assert octets.store(1, second, "flow") == [0, 20, "07"]


def test_a_table_keeps_the_order_of_first_use() -> None:
    """Places in the document never move."""
    table = Table()
    assert [table.index(key) for key in ("b", "a", "b")] == [0, 1, 0]
    assert table.items == ["b", "a"]


def test_only_the_end_of_a_row_is_trimmed() -> None:
    """An empty column in the middle keeps the others in their places."""
    assert trimmed([3, 0, [], 5, None, [], 0]) == [3, 0, [], 5]
