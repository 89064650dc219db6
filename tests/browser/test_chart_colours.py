"""Charts take the colours of the page around them."""

import io

import pytest
from bokeh.embed import file_html
from bokeh.resources import INLINE
from PIL import Image

from workbench.views.charts import curve_chart

pytestmark = [pytest.mark.browser, pytest.mark.slow]
DARK = {"--jp-layout-color0": "#111111", "--jp-ui-font-color1": "#eeeeee"}


@pytest.mark.parametrize(
    ("colours", "paper"), [(DARK, (0x11, 0x11, 0x11)), ({}, (255, 255, 255))], ids=["dark", "light"]
)
def test_a_chart_is_as_dark_as_its_page(static_page, tmp_path, colours, paper):
    """Paper and legend have the page's colour, and nothing else covers more of the chart."""
    chart = curve_chart({"one": [(1, 2), (3, 4)]}, across="n", up="messages", title="Curves")
    style = "".join(f"{name}:{colour};" for name, colour in colours.items())
    html = file_html(chart.figure, INLINE).replace(
        "<head>", f"<head><style>:root{{{style}}}</style>"
    )
    path = tmp_path / "chart.html"
    path.write_text(html, encoding="utf-8")
    page = static_page.page
    page.goto(path.as_uri())
    page.locator(".bk-label").wait_for()  # of the legend, which is drawn last
    picture = Image.open(io.BytesIO(page.locator(".bk-Figure").screenshot())).convert("RGB")
    counted = sorted(picture.getcolors(picture.width * picture.height), reverse=True)
    assert counted[0][1] == paper
    assert counted[0][0] > picture.width * picture.height * 0.8
    static_page.assert_quiet()
