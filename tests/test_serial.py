"""Serial number arithmetic: the table of the fact sheet, and laws on generated numbers."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench import serial
from workbench.serial import HALF, MAX, MODULUS, Order, SerialError

NUMBERS = st.one_of(
    st.integers(0, MAX), st.sampled_from([0, 1, HALF - 1, HALF, HALF + 1, MAX - 1, MAX])
)
STEPS = st.one_of(st.integers(0, HALF - 1), st.sampled_from([0, 1, HALF - 1]))

rules = settings(derandomize=True, deadline=None, max_examples=300)


@pytest.mark.parametrize(
    ("s", "n", "result"),
    [
        (4294967295, 1, 0),
        (4294967291, 10, 5),
        (0, 0, 0),
        (0, 2147483647, 2147483647),
        (2147483648, 2147483647, 4294967295),
    ],
)
def test_add_wraps_at_32_bits(s, n, result):
    """(s + n) mod 2^32 [RFC 1982, 3.1]."""
    assert serial.add(s, n) == result


@pytest.mark.parametrize("n", [-1, 2147483648, 4294967295])
def test_add_takes_less_than_half_a_circle(n):
    """A step of 2^31 or more, or backwards, is not defined [RFC 1982, 3.1]."""
    with pytest.raises(SerialError, match="legal is 0 to 2147483647"):
        serial.add(7, n)


@pytest.mark.parametrize(
    ("a", "b", "order"),
    [
        (4294967295, 0, Order.LESS),
        (0, 4294967295, Order.GREATER),
        (0, 0, Order.EQUAL),
        (0, 1, Order.LESS),
        (0, 2147483647, Order.LESS),
        (2147483649, 0, Order.LESS),
        (2147483647, 0, Order.GREATER),
    ],
)
def test_the_shorter_way_round_decides_the_order(a, b, order):
    """4294967295 comes before 0 [RFC 1982, 3.2]."""
    assert serial.compare(a, b) is order


@pytest.mark.parametrize(("a", "b"), [(0, 2147483648), (2147483648, 0), (1, 2147483649)])
def test_half_a_circle_apart_has_no_order(a, b):
    """Two numbers at a distance of exactly 2^31 cannot be compared [RFC 1982, 3.2]."""
    with pytest.raises(SerialError, match="neither is the later one"):
        serial.compare(a, b)
    with pytest.raises(SerialError):
        serial.diff(a, b)


@pytest.mark.parametrize(
    ("a", "b", "distance"),
    [(3, 4294967294, 5), (4294967294, 3, -5), (2147483647, 0, 2147483647), (9, 9, 0)],
)
def test_diff_is_the_signed_distance(a, b, distance):
    """diff(3, 4294967294) is 5: five steps lead from 4294967294 over 0 to 3."""
    assert serial.diff(a, b) == distance


@rules
@given(NUMBERS, STEPS)
def test_diff_undoes_add(s, n):
    """diff(add(s, n), s) is n."""
    assert serial.diff(serial.add(s, n), s) == n


@rules
@given(NUMBERS, NUMBERS)
def test_steps_lead_forward_even_the_long_way_round(s, n):
    """As many as one likes below 2^32: steps(b, a) and steps(a, b) go round the circle once."""
    there, back = serial.steps(n, s), serial.steps(s, n)
    assert 0 <= there < MODULUS
    assert there + back in (0, MODULUS)
    assert (s + there) % MODULUS == n


@rules
@given(NUMBERS, NUMBERS)
def test_diff_changes_its_sign_with_the_order(a, b):
    """diff(a, b) is -diff(b, a), and compare tells its sign."""
    if (a - b) % MODULUS == HALF:
        with pytest.raises(SerialError):
            serial.diff(a, b)
        return
    distance = serial.diff(a, b)
    assert serial.diff(b, a) == -distance
    assert serial.compare(a, b).value == (distance > 0) - (distance < 0)


@rules
@given(NUMBERS, NUMBERS, STEPS)
def test_order_does_not_depend_on_where_the_circle_begins(a, b, shift):
    """Moving both numbers alike changes neither their order nor their distance."""
    if (a - b) % MODULUS == HALF:
        return
    assert serial.diff(serial.add(a, shift), serial.add(b, shift)) == serial.diff(a, b)


@given(NUMBERS, NUMBERS)
@rules
def test_a_reader_gets_a_distance_of_any_two_numbers(a, b):
    """As `diff` where that is defined; half a circle counts as behind, and nothing raises."""
    distance = serial.signed(a, b)
    assert -HALF <= distance < HALF
    assert (b + distance) % MODULUS == a
    if serial.steps(a, b) != HALF:
        assert distance == serial.diff(a, b)


@rules
@given(NUMBERS, st.lists(STEPS, max_size=20))
def test_numbers_on_a_line_go_on_where_serial_numbers_begin_again(first, steps):
    """Unwrapped they are as far apart as they were counted, over the seam too."""
    line, place = serial.Unwrapped(), first
    assert line.at(first) == first
    for step in steps:
        place += step
        assert line.at(place % MODULUS) == place
