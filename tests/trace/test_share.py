"""The coding of share codes: round trips, damage of every kind, and bounds."""

import base64
import json
import zlib
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.trace.share import (
    LARGEST_PART,
    LONGEST_CODE,
    LONGEST_READ,
    PARTS,
    ShareCodeError,
    Shared,
    decode,
    encode,
)

SHARED = Shared(
    scenario="credit",
    seed=1,
    preset="spec",
    preset_changes={"incoming_window": 8},
    parameters={"messages": 10, "policy": "manual", "n": None, "visible": True},
    acts=((26, "grant", {"link_credit": 3}), (40, "grant", {"link_credit": 0}), (40, "stop", {})),
    cursor=27,
    trace_hash="0123456789abcdef" * 4,
    model=1,
)
CODE = encode(SHARED)
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_."

values = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=20)
names = st.text(min_size=1, max_size=12)
shares = st.builds(
    Shared,
    scenario=names,
    seed=st.integers(0, 2**32),
    max_rows=st.none() | st.integers(1, 100_000),
    own_code=st.lists(names, max_size=2).map(tuple),
    preset=names,
    preset_changes=st.dictionaries(names, values, max_size=2),
    parameters=st.dictionaries(names, values, max_size=4),
    acts=st.lists(
        st.tuples(st.integers(-1, 10**6), names, st.dictionaries(names, values, max_size=2)),
        max_size=6,
    ).map(tuple),
    cursor=st.integers(0, 10**6),
    trace_hash=st.binary(min_size=32, max_size=32).map(bytes.hex),
    model=st.integers(0, 99),
)


def part(tag: str, value: object) -> str:
    """A part with a right checksum, whatever it holds; octets go in as they are."""
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    if not isinstance(value, bytes):
        packer = zlib.compressobj(9, zlib.DEFLATED, -15)
        data = packer.compress(data) + packer.flush()
    body = tag + base64.urlsafe_b64encode(data).decode().rstrip("=")
    check = zlib.crc32(body.encode()).to_bytes(4, "big")
    return body + base64.urlsafe_b64encode(check).decode().rstrip("=")


def with_part(tag: str, made: str) -> str:
    """The code with another part in place of one."""
    head, *parts = CODE.split(".")
    return ".".join([head, *(made if one[0] == tag else one for one in parts)])


@given(shares)
@settings(max_examples=60)
def test_what_is_coded_is_read_again(shared):
    """Every part, whatever texts and numbers are in it."""
    assert decode(encode(shared)) == shared


def test_a_code_is_short_and_can_be_put_anywhere():
    """Letters, digits, dash, underscore and dot: a cell, a mail, the fragment of a link."""
    assert CODE.startswith("WB1.")
    assert set(CODE) <= set(ALPHABET)
    assert len(CODE) < 500


def test_the_coding_is_fixed():
    """A code that was given out is read by every later version: a change is a new version."""
    small = Shared(
        scenario="credit", seed=0, preset="spec", parameters={"messages": 10},
        acts=((26, "grant", {"link_credit": 3}),), cursor=27, trace_hash="00" * 32, model=1,
    )  # fmt: skip
    kept = (
        "WB1.Si1ZKLkpNySxR0jHQySvNydGJjo0FAAELbmQg.Ni1YqLkhNVtKpro0FAAkKVP6Q"
        ".Pq1bKTS0uTkxPLVayMjSoBQATsu6zw.Ai442MtNRSi9KzCtR0qlWysnMy45PLkpNySxRsjKujY0FAAsFM0Ew"
        ".CMzIHAAmAeVyw.Hi1YyoBAo6RjGAgAGHUeDw"
    )
    assert decode(kept) == small


@pytest.mark.parametrize("at", range(len(CODE)))
def test_a_changed_character_is_reported_and_costs_at_most_two_parts(at):
    """Wherever it is: the part that it is in is named, and the others are what they were.

    A changed dot joins two parts, so both are lost; in the prefix it can be another version.
    """
    for other in {"A", "z", "7", ".", "-", "é"} - {CODE[at]}:
        altered = CODE[:at] + other + CODE[at + 1 :]
        if at < len("WB1."):
            with pytest.raises(ShareCodeError, match=r"no share code|share code of version"):
                decode(altered)
            continue
        read = decode(altered)
        assert read.problems, altered
        lost = [tag for tag, one in groups(SHARED).items() if groups(read)[tag] != one]
        assert len(lost) <= 2
        for tag in lost:
            assert any(problem.startswith(PARTS[tag]) for problem in read.problems), altered


def groups(shared: Shared) -> dict[str, object]:
    """What each part says."""
    return {
        "S": (shared.scenario, shared.seed, shared.own_code),
        "N": (shared.preset, dict(shared.preset_changes)),
        "P": shared.parameters,
        "A": shared.acts,
        "C": shared.cursor,
        "H": (shared.trace_hash, shared.model),
    }


@pytest.mark.parametrize("length", range(len(CODE)))
def test_a_code_that_was_cut_off_is_reported(length):
    """At any place: the missing parts are named, and those before are read."""
    try:
        read = decode(CODE[:length])
    except ShareCodeError:
        assert CODE[:length].count(".") <= 1
        return
    assert any("trace hash" in problem for problem in read.problems)
    for tag, one in groups(SHARED).items():
        if CODE.index(f".{tag}") < CODE.rindex(".", 0, length):
            assert groups(read)[tag] == one


@pytest.mark.parametrize(
    "around",
    [
        "{}\n", "  {}", "`{}`", "“{}”", "Look: {}", "https://example.org/#{}", "\ufeff{}",
        "see <{}>", "(**{}**),",
    ],
)  # fmt: skip
def test_what_mails_and_chats_put_around_a_code_does_no_harm(around):
    """Blanks, line breaks, quotation marks, invisible characters, a link before it."""
    wrapped = "\r\n".join(CODE[at : at + 60] for at in range(0, len(CODE), 60))
    assert decode(around.format(wrapped)) == SHARED
    assert decode("\u200b\u00a0".join(CODE)) == SHARED


@pytest.mark.parametrize(
    ("text", "telling"),
    [
        ("", "no share code: one begins with WB1."),
        ("hello", "no share code"),
        ("WB.S", "no share code"),
        ("\ud800", "no share code"),
        (CODE.replace("WB1", "WB2"), "version 2; this workbench reads version 1"),
        (CODE.lower(), "no share code"),
        ("WB1.", "nothing of this share code can be read"),
        ("WB1." + "A" * 500, "nothing of this share code can be read"),
        ("x" * (LONGEST_READ + 1), "too many for a share code"),
        (None, "a text, not NoneType"),
        (b"WB1.", "a text, not bytes"),
    ],
)  # fmt: skip
def test_a_text_that_is_no_code_is_told(text, telling):
    """In one line, with what a code looks like."""
    with pytest.raises(ShareCodeError, match=telling) as refusal:
        decode(text)
    assert len(str(refusal.value)) < 1000


@pytest.mark.parametrize(
    ("tag", "value"),
    [
        ("S", ["credit", 1, None]),
        ("S", [7, 1, None, []]),
        ("S", ["credit", True, None, []]),
        ("S", ["credit", 1.5, None, []]),
        ("S", ["c" * 5000, 1, None, []]),
        ("N", ["spec", {"incoming_window": [1]}]),
        ("N", {"spec": 1}),
        ("P", {"messages": 10**400}),
        ("P", {"messages": {"a": 1}}),
        ("P", [1]),
        ("A", [[26, "grant"]]),
        ("A", {"26": "grant"}),
        ("A", [[26, "grant", {"link_credit": 1.5}]]),
        ("A", [[1, "grant", {}]] * 2001),
        ("C", "27"),
        ("C", True),
        ("H", ["xyz", 1]),
        ("H", "0" * 64),
        ("P", b""),
        ("P", b"\x00\x01\x02"),
        ("P", zlib.compress(b"{}")),
    ],
)
def test_a_part_with_a_right_checksum_and_wrong_contents_is_named(tag, value):
    """Somebody made it by hand: it is refused like a damaged one, and the rest is read."""
    read = decode(with_part(tag, part(tag, value)))
    assert any(problem.startswith(f"{PARTS[tag]}: this part") for problem in read.problems)
    same = [each for each, one in groups(SHARED).items() if groups(read)[each] == one]
    assert set(same) == set(PARTS) - {tag}


def test_a_small_part_that_unpacks_to_something_huge_is_refused():
    """A decompression bomb: it is unpacked no further than the bound."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    bomb = packer.compress(b"[" + b"0," * 5_000_000) + packer.flush()
    assert len(bomb) < 15_000
    made = with_part("C", part("C", bomb))
    assert len(made) < LONGEST_READ
    assert f"unpacks to more than {LARGEST_PART:,}" in " ".join(decode(made).problems)


@pytest.mark.parametrize("text", [b"[" * 60_000, b'{"a":' * 12_000, b"NaN", b"9" * 60_000])
def test_json_that_is_deep_or_no_number_is_refused(text):
    """Nothing of it runs away."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    made = with_part("P", part("P", packer.compress(text) + packer.flush()))
    read = decode(made)
    assert read.parameters is None
    assert any(problem.startswith("parameters: this part") for problem in read.problems)


def test_a_part_of_a_newer_workbench_is_named_and_the_rest_is_read():
    """Its checksum fits, its letter is unknown."""
    read = decode(f"{CODE}.{part('X', [1])}")
    assert read.problems == ("a part 'X' is unknown here: a newer workbench made this code",)
    assert replace(read, problems=()) == SHARED


def test_a_code_pasted_twice_is_still_read():
    """The seam is reported, the run is the run."""
    read = decode(CODE + "\n" + CODE)
    assert groups(read) == groups(SHARED)


def test_two_different_copies_of_a_part_are_reported():
    """Whoever glued two codes together is told which of them counts."""
    read = decode(f"{CODE}.{part('C', 7)}")
    assert read.problems == ("cursor: there are two of it; the first one is taken",)
    assert replace(read, problems=()) == SHARED


def test_a_run_with_very_many_acts_is_told_what_to_do():
    """About 2,000 characters is what a chat lets pass."""
    acts = tuple((at * 17, "grant", {"link_credit": at * at * 7919 % 99_991}) for at in range(400))
    with pytest.raises(ShareCodeError, match="with 400 actions") as refusal:
        encode(replace(SHARED, acts=acts))
    assert f"more than {LONGEST_CODE:,}" in str(refusal.value)
    assert "workbench run ... -o" in str(refusal.value)
    assert len(encode(replace(SHARED, acts=acts[:120]))) <= LONGEST_CODE


@given(st.text(max_size=300) | st.text(ALPHABET, max_size=300).map("WB1.".__add__))
def test_whatever_is_pasted_the_answer_is_words(text):
    """Never another error."""
    try:
        decode(text)
    except ShareCodeError:
        return
