"""The command that runs the client's own tests; the tests themselves are not in this repository."""

import pytest

from .python_client_suite import copy_tests, main


def test_what_is_no_checkout_of_the_client_is_told_in_one_line(capsys, tmp_path):
    """Before anything is started."""
    with pytest.raises(SystemExit) as ended:
        main([str(tmp_path)])
    assert ended.value.code == 2
    line = capsys.readouterr().err.splitlines()[-1]
    assert line.endswith("has no conftest.py; wanted is a checkout of the client's repository")


def test_the_copied_tests_connect_to_the_port_that_is_given(tmp_path):
    """Everything else stays as it is, in its folder."""
    text = 'uri = "amqp://guest:guest@localhost:5672/"\nother = "amqps://localhost:5671/"\n'
    inner = tmp_path / "from" / "inner"
    inner.mkdir(parents=True)
    (inner / "test_one.py").write_text(text)
    copy_tests(tmp_path / "from", tmp_path / "to", 40123)
    copied = (tmp_path / "to" / "inner" / "test_one.py").read_text()
    assert copied == text.replace("localhost:5672", "127.0.0.1:40123")
