"""A small table on a page: what stands on which side of its column."""

import re

from tests.conftest import REPO
from workbench.exercises.table import Table
from workbench.languages import words

LEFT = ' style="text-align:left"'


def shown(head, *lines):
    """A table as a notebook shows it."""
    return Table(name="table", head=head, lines=list(lines))._repr_html_()


def test_words_stand_on_the_left_with_their_head_and_numbers_on_the_right():
    """Each column by what it holds."""
    page = shown(
        ("rule", "order", "credit"), ("spec", "one after the other", "5"), ("set", "crossing", "6")
    )
    assert f'<th scope="col"{LEFT}>rule</th><th scope="col"{LEFT}>order</th>' in page
    assert '<th scope="col">credit</th>' in page
    assert f"<td{LEFT}>crossing</td><td>6</td>" in page


def test_a_word_among_numbers_stands_where_they_do_and_a_sign_among_words_too():
    """A column has one side."""
    page = shown(("run", "ms", "ends"), ("1", "12", "="), ("2", "for ever", "differ"))
    assert f'<th scope="col"{LEFT}>run</th><th scope="col">ms</th>' in page
    assert f"<td>12</td><td{LEFT}>=</td>" in page
    assert f"<td>for ever</td><td{LEFT}>differ</td>" in page


def test_times_stand_where_numbers_do():
    """`112 s` stood left, right beside the number of the column before it."""
    page = shown(("answer", "stood"), ("throttle", "112 s"), ("disk", "0 s"))
    assert '<th scope="col">stood</th>' in page
    page = shown(("answer", "took"), ("throttle", "12 seconds"), ("disk", "in 5 ms"))
    assert f'<th scope="col"{LEFT}>took</th>' in page


def test_the_name_of_a_method_goes_on_in_the_next_line_of_a_narrow_page():
    """After dot, underscore or equals sign, in a head too; a number is never parted."""
    page = shown(("release", "tells", "ms"), ("3.5.5", "connection.blocked, 0.4", "1.5"))
    assert f"<td{LEFT}>connection.<wbr>blocked, 0.4</td><td>1.5</td>" in page
    assert "(active=<wbr>false)" in shown(("release", "tells"), ("1.5.0", "(active=false)"))
    page = shown(("step", "Buf_Alloc"), ("orders_socket", "60_950"))
    assert "Buf_<wbr>Alloc" in page
    assert "orders_<wbr>socket" in page
    assert "60_950" in page


def test_a_time_never_leaves_its_unit_to_the_next_line():
    """In a narrow page `(60 s)` stood in two lines; words may part where they did."""
    page = shown(("setting", "legal"), ("work", "0 to 60000000 µs (60 s)"), ("rest", "4 senders"))
    assert "0 to 60000000&nbsp;µs (60&nbsp;s)" in page
    assert "4 senders" in page


def test_a_protocol_s_name_stands_in_one_line():
    """`AMQP 0-10` parted behind its dash."""
    page = shown(("protocol", "n"), ("AMQP 0-10", "1"), ("AMQP 0-9-1, old", "2"))
    for name in ("AMQP 0-10", "AMQP 0-9-1"):
        assert f'<span style="white-space:nowrap">{name}</span>' in page


def test_the_texts_of_every_table_are_asked_for_and_no_others():
    """A text that nobody asks for is dead; to ask for one that is not there is an error."""
    sources = [path.read_text("utf-8") for path in (REPO / "workbench").rglob("*.py")]
    asked = {key for source in sources for key in re.findall(r'table_of\(\s*"([^"]+)"', source)}
    assert asked == set(words("tables"))
