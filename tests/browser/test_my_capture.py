"""A capture of one's own: handed over by the button, read, and opened at its worst frame."""

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def test_a_capture_that_is_handed_over_is_told_and_opened(lab_page, repo):
    """The headline, each link's story, and the stage; a file that is no capture is named."""
    lab_page.open("my_capture.ipynb")
    lab_page.run_all()
    desk = lab_page.show_cell("desk")
    capture = repo / "data" / "captures" / "rmq43_b_consumer_credit.pcapng"
    chosen(lab_page, desk, capture)
    desk.locator(".story").get_by_text("The broker waited 4 times").wait_for()
    desk.get_by_role("status").get_by_text("was read.").wait_for()
    desk.locator(".wst-now").get_by_text("row 23").wait_for()
    other = lab_page.root / "notes.pcap"
    other.write_bytes(b"GET / HTTP/1.1")
    chosen(lab_page, desk, other)
    desk.get_by_text("notes.pcap: not a capture").wait_for()
    assert desk.locator(".story").count() == 0
    chosen(lab_page, desk, capture)
    desk.get_by_role("status").get_by_text("was read.").wait_for()
    path = desk.get_by_placeholder("or its path")
    path.fill(f"{other} ")
    path.press("Enter")
    desk.get_by_text("notes.pcap: not a capture").wait_for()
    path.fill(str(capture))
    path.press("Enter")
    # It stands beside the desk, and so in the notebook when it is saved.
    desk.get_by_text(f"{capture.name}: The longest stall: 802 ms").wait_for()
    lab_page.assert_quiet()


def chosen(lab_page, desk, file):
    """Press the button and choose the file."""
    with lab_page.page.expect_file_chooser() as chooser:
        desk.get_by_role("button", name="Capture").click()
    chooser.value.set_files(file)
