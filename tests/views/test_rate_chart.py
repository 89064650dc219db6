"""The rate over a whole trace: its dips, and that nothing is drawn that was not counted first."""

import pytest

from workbench.views.rate_chart import MOST_POINTS, dips, held_chart, points, rate_chart

HALF = 500_000


def windows(*counts):
    """Windows of half a second with these messages."""
    return [(place * HALF, count) for place, count in enumerate(counts)]


def test_a_dip_is_windows_in_a_row_with_clearly_less_than_usual():
    """From its first window to the end of its last; the rate is per second."""
    (dip,) = dips(windows(50, 50, 50, 20, 10, 50, 50, 50))
    assert (dip.name, dip.start_us, dip.end_us) == ("A", 3 * HALF, 5 * HALF)
    assert (dip.rate, dip.usual, dip.seconds) == (30.0, 100.0, 1.0)


def test_dips_have_letters_in_order_of_time():
    """The second one is B, however deep."""
    found = dips(windows(50, 50, 0, 0, 50, 50, 40, 40, 50, 50, 50))
    assert [(dip.name, dip.start_us) for dip in found] == [("A", 2 * HALF), ("B", 6 * HALF)]


@pytest.mark.parametrize(
    "counts",
    [
        (50, 50, 50, 10, 50, 50),  # one window alone
        (10, 10, 50, 50, 50, 50),  # the beginning
        (50, 50, 50, 50, 10, 10),  # the ending
        (50, 50, 49, 49, 50, 50),  # hardly less
        (50, 50),
        (50,),
        (),
    ],
)
def test_what_is_no_dip(counts):
    """A single window, a beginning, an ending, and what is hardly less than usual."""
    assert dips(windows(*counts)) == []


def test_a_burst_after_a_dip_does_not_make_dips_of_the_rest():
    """The usual rate is the middle one, not the mean."""
    found = dips(windows(50, 50, 0, 0, 500, 50, 50, 50, 50))
    assert [(dip.start_us, dip.end_us) for dip in found] == [(2 * HALF, 4 * HALF)]


def test_the_chart_has_a_point_for_each_window_and_a_shade_for_each_dip():
    """So many glyphs, and a letter that a person can name."""
    data = windows(50, 50, 50, 20, 10, 50, 50, 50)
    chart = rate_chart(data)
    assert points(chart) == len(data) + 1
    assert [item.text for item in chart.center if hasattr(item, "text")] == ["A"]
    rates = chart.renderers[0].data_source.data["rate"]
    assert rates[:4] == [100.0, 100.0, 100.0, 40.0]


def test_a_burst_does_not_flatten_the_dips():
    """The chart ends at twice the usual rate, and the burst has its number written to it."""
    chart = rate_chart(windows(50, 50, 20, 20, 900, 50, 50, 50))
    assert chart.y_range.end == pytest.approx(2.1 * 100)
    words = [item.text for item in chart.center if hasattr(item, "text")]
    assert [word for word in words if "1,800" in word]


def test_each_brake_has_a_lane_as_high_as_its_most_and_a_hatch_of_its_own():
    """One link beside sixty is as high as the sixty; nothing rests on colour alone."""
    rows = [
        {"window_start_us": 0, "brake": "link-credit", "links": 1},
        {"window_start_us": HALF, "brake": "alarm", "links": 60},
        {"window_start_us": HALF, "brake": "link-credit", "links": 1},
        {"window_start_us": 2 * HALF, "brake": "alarm", "links": 30},
    ]
    chart = held_chart(rows, window_us=HALF, end_us=3 * HALF)
    assert points(chart) == len(rows)
    bars = {bar.name: bar for bar in chart.renderers}
    spans = {}
    for brake, bar in bars.items():
        data = bar.data_source.data
        pairs = zip(data["bottom"], data["top"], strict=True)
        spans[brake] = [round(top - bottom, 6) for bottom, top in pairs]
    assert spans == {"link-credit": [0.9, 0.9], "alarm": [0.9, 0.45]}
    told = set(chart.yaxis[0].major_label_overrides.values())
    assert told == {"link-credit, up to 1", "alarm, up to 60"}
    assert len({bar.glyph.hatch_pattern for bar in bars.values()}) == len(bars)


def test_more_points_than_anybody_can_see_are_refused():
    """Aggregate first: the text says so."""
    with pytest.raises(ValueError, match="aggregate first"):
        rate_chart(windows(*[1] * (MOST_POINTS + 1)))
    rows = [{"window_start_us": n, "brake": "alarm", "links": 1} for n in range(MOST_POINTS + 1)]
    with pytest.raises(ValueError, match="aggregate first"):
        held_chart(rows, window_us=1, end_us=9)
