"""A small table on a page: what stands on which side of its column."""

from workbench.exercises.table import Table

LEFT = ' style="text-align:left"'


def test_words_stand_on_the_left_with_their_head_and_numbers_on_the_right():
    table = Table(
        name="orders",
        head=("rule", "order", "credit"),
        lines=[("spec", "one after the other", "5"), ("set", "crossing", "6")],
    )
    shown = table._repr_html_()
    assert f'<th scope="col"{LEFT}>rule</th><th scope="col"{LEFT}>order</th>' in shown
    assert '<th scope="col">credit</th>' in shown
    assert f"<td{LEFT}>crossing</td><td>6</td>" in shown


def test_a_word_among_numbers_stands_where_they_do_and_a_sign_among_words_too():
    table = Table(
        name="waits",
        head=("run", "ms", "ends"),
        lines=[("1", "12", "="), ("2", "for ever", "differ")],
    )
    shown = table._repr_html_()
    assert f'<th scope="col"{LEFT}>run</th><th scope="col">ms</th>' in shown
    assert f"<td>12</td><td{LEFT}>=</td>" in shown
    assert f"<td>for ever</td><td{LEFT}>differ</td>" in shown
