"""Charts take the colours of the page around them."""

import io

import pytest
from bokeh.embed import file_html
from bokeh.resources import INLINE
from PIL import Image

from workbench.views.charts import curve_chart

pytestmark = [pytest.mark.browser, pytest.mark.slow]
DARK = {"--jp-layout-color0": "#111111", "--jp-ui-font-color1": "#eeeeee"}
PAPERS = {"dark": (0x11, 0x11, 0x11), "light": (255, 255, 255)}


@pytest.mark.parametrize("before", ["dark", "light"])
def test_a_chart_is_as_dark_as_its_page_also_when_that_changes(static_page, tmp_path, before):
    """Paper and legend have the page's colour, and nothing else covers more of the chart."""
    chart = curve_chart({"one": [(1, 2), (3, 4)]}, across="n", up="messages", title="Curves")
    style = "".join(f"{name}:{colour};" for name, colour in DARK.items())
    html = file_html(chart.figure, INLINE).replace(
        "<head>", f"<head><style>:root[data-dark]{{{style}}}</style>"
    )
    html = html.replace("<html", "<html data-dark" if before == "dark" else "<html", 1)
    path = tmp_path / "chart.html"
    path.write_text(html, encoding="utf-8")
    page = static_page.page
    page.goto(path.as_uri())
    page.locator(".bk-label").wait_for()  # of the legend, which is drawn last
    assert paper_of(page) == PAPERS[before]
    page.evaluate(
        """() => new Promise((painted) => {
          document.documentElement.toggleAttribute('data-dark');
          document.body.dataset.jpThemeLight = 'switched';
          requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(painted)));
        })"""
    )
    assert paper_of(page) == PAPERS["light" if before == "dark" else "dark"]
    static_page.assert_quiet()


def paper_of(page) -> tuple[int, int, int]:
    """The colour of most of the chart."""
    picture = Image.open(io.BytesIO(page.locator(".bk-Figure").screenshot())).convert("RGB")
    counted = sorted(picture.getcolors(picture.width * picture.height), reverse=True)
    assert counted[0][0] > picture.width * picture.height * 0.8
    return counted[0][1]
