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


def test_a_head_over_numbers_stays_with_them_though_a_word_is_among_them():
    table = Table(name="waits", head=("run", "ms"), lines=[("1", "12"), ("2", "for ever")])
    shown = table._repr_html_()
    assert f'<th scope="col"{LEFT}>run</th><th scope="col">ms</th>' in shown
    assert "<td>12</td></tr><tr>" in shown
