"""The command that runs clients' own tests; those tests themselves are not in this repository."""

import pytest

from .own_suite import SUITES, copy_tests, main, suite_in

PYTHON_CLIENT, PIKA = SUITES


def test_what_is_no_checkout_of_a_client_is_told_in_one_line(capsys, tmp_path):
    """Before anything is started."""
    with pytest.raises(SystemExit) as ended:
        main([str(tmp_path)])
    assert ended.value.code == 2
    line = capsys.readouterr().err.splitlines()[-1]
    assert line.endswith(
        "is no checkout of rabbitmq_amqp_python_client or pika, with its tests/conftest.py"
    )


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.package)
def test_whose_checkout_it_is_is_seen_in_the_folder(suite, tmp_path):
    """By the client's package, beside its tests."""
    (tmp_path / suite.package).mkdir()
    assert suite_in(tmp_path) is None
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "conftest.py").touch()
    assert suite_in(tmp_path) is suite


@pytest.mark.parametrize(
    ("suite", "text", "copied"),
    [
        (
            PYTHON_CLIENT,
            'uri = "amqp://guest:guest@localhost:5672/"\nother = "amqps://localhost:5671/"\n',
            'uri = "amqp://guest:guest@127.0.0.1:40123/"\nother = "amqps://localhost:5671/"\n',
        ),
        (
            PIKA,
            "from tests.misc import one\nport = 5672\nother = 15672\n    import tests.base\n",
            "from client_tests.misc import one\nport = 40123\nother = 15672\n"
            "    import client_tests.base\n",
        ),
    ],
    ids=lambda one: getattr(one, "package", ""),
)
def test_the_copied_tests_connect_to_the_port_that_is_given(suite, text, copied, tmp_path):
    """Everything else stays as it is, in its folder."""
    inner = tmp_path / "from" / "inner"
    inner.mkdir(parents=True)
    (inner / "test_one.py").write_text(text)
    copy_tests(tmp_path / "from", tmp_path / "to", suite, 40123)
    assert (tmp_path / "to" / "inner" / "test_one.py").read_text() == copied
