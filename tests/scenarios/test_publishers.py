"""Publishers to several queues over one session: what stops each of them, and what does not."""

import pytest

from workbench import presets
from workbench.scenarios import run
from workbench.scenarios.action import ActionError
from workbench.scenarios.declare import ParameterError
from workbench.scenarios.publishers import service_times
from workbench.trace.schema import BROKER, CLIENT, RECEIVED, SENT

BOTH = pytest.mark.parametrize("preset", ["rmq4.0", "rmq4.3"])


def then(played, name, **arguments):
    """An act when the run has come to rest."""
    return played.act(played.rows[-1].seq, name, **arguments)


def sent(played, link="q1") -> int:
    """Messages that the client sent over a link."""
    return sum(
        row.kind == "transfer" and row.event == SENT and row.link == link for row in played.rows
    )


def grants(played, link="q1") -> list[tuple[int, int]]:
    """delivery-count and link-credit of the broker's flows about a link."""
    return [
        (row.frame["delivery_count"], row.frame["link_credit"])
        for row in played.rows
        if row.kind == "flow" and row.event == SENT and row.vantage == BROKER and row.link == link
    ]


def times(played, event, link="q1") -> list[int]:
    """When transfers were sent, or arrived, on a link."""
    return [
        row.t_us
        for row in played.rows
        if row.kind == "transfer" and row.event == event and row.link == link
    ]


@BOTH
@pytest.mark.parametrize("settled", [False, True])
@pytest.mark.parametrize(("confirmed", "most"), [(0, 255), (1, 340)])
def test_a_stalled_queue_stops_its_publisher(preset, settled, confirmed, most):
    """255 messages if nothing was ever confirmed, 340 if one was; how fast does not matter."""
    for rate in (0, 10_000):
        played = run("publishers", preset, {"settled": settled, "rate": rate})
        if confirmed:
            played = then(played, "publish", count=confirmed)
        played = then(then(played, "stall"), "publish", count=600)
        assert sent(played) == most
        resumed = then(played, "resume")
        assert sent(resumed) == 600 + confirmed


@BOTH
def test_credit_is_a_sawtooth_of_170_and_85(preset):
    """A queue that keeps up: granted again each time that half is used."""
    played = then(run("publishers", preset), "publish", count=400)
    assert grants(played) == [(85 * number, 170) for number in range(5)]


@BOTH
def test_one_slow_target_leaves_the_others_as_fast_as_without_it(preset):
    """Two fast targets beside a slow one on one session: their rates stay within 10 %."""

    def rates(service_us):
        played = run("publishers", preset, {"queues": 3, "service_us": service_us})
        played = then(played, "publish", count=800)
        found = {}
        for link in ("q1", "q2", "q3"):
            arrivals = times(played, RECEIVED, link)
            assert len(arrivals) == 800
            found[link] = 799 / (arrivals[-1] - arrivals[0])
        return found

    fair, slow = rates("50"), rates("50,50,2000")
    for link in ("q1", "q2"):
        assert slow[link] == pytest.approx(fair[link], rel=0.1)
    assert slow["q3"] < fair["q3"] / 3


@BOTH
def test_a_stalled_queue_does_not_slow_the_consumer_on_the_same_session(preset):
    """One connection both ways: messages come as fast as without the stall."""

    def last_arrival(stalled):
        played = run("publishers", preset, {"consumer": True, "ready": 600, "consumer_credit": 0})
        if stalled:
            played = then(then(played, "stall"), "publish", count=600)
        begin = played.rows[-1].t_us
        played = then(played, "grant", link_credit=600)
        arrivals = [
            row.t_us
            for row in played.rows
            if row.kind == "transfer" and row.event == RECEIVED and row.vantage.startswith(CLIENT)
        ]
        assert len(arrivals) == 600
        return arrivals[-1] - begin

    assert last_arrival(True) == pytest.approx(last_arrival(False), rel=0.1)


@BOTH
def test_consumers_go_on_under_an_alarm_and_publishers_do_not(preset):
    """The alarm closes windows towards the broker; what the broker sends is not concerned."""
    played = run("publishers", preset, {"consumer": True, "ready": 50})
    played = then(played, "alarm")
    played = then(played, "publish", count=5)
    assert sent(played) == 0
    played = then(played, "grant", link_credit=50)
    arrivals = [row for row in played.rows if row.kind == "transfer" and row.event == RECEIVED]
    assert len(arrivals) == 50
    assert sent(then(played, "clear")) == 5


@BOTH
def test_a_changed_max_link_credit_is_for_sessions_to_come(preset):
    """Attached links go on with the old number, a second session's link has the new one."""
    played = then(run("publishers", preset), "set_max_link_credit", link_credit=10)
    played = then(played, "publish", count=200)
    assert grants(played) == [(0, 170), (85, 170), (170, 170)]
    later = then(then(played, "open_session"), "publish", queue="later", count=12)
    assert grants(later, "later") == [(0, 10), (5, 10), (10, 10)]
    assert {row.session for row in later.rows if row.link == "later"} == {2}
    assert {row.connection for row in later.rows if row.connection} == {"c1"}


def test_max_link_credit_is_a_parameter():
    """Ten: the first flow says ten, the next at five left; a stalled queue takes fifteen."""
    played = run("publishers", "rmq4.3", {"max_link_credit": 10})
    assert grants(played) == [(0, 10)]
    assert sent(then(then(played, "stall"), "publish", count=60)) == 15


def test_a_huge_credit_leaves_the_window_as_the_only_bound():
    """Credit and window are independent of each other (article, complexity)."""
    played = run("publishers", "rmq4.3", {"max_link_credit": 2147483647, "rate": 0})
    played = then(played, "hold", direction="c2b")
    played = then(played, "publish", count=1000)
    assert sent(played) == presets.get("rmq4.3").incoming_window


@pytest.mark.parametrize("preset", presets.names(presets.AMQP_1_0))
def test_everything_published_arrives_whatever_the_preset(preset):
    """Nothing is lost or sent twice, in the order of each link."""
    played = run("publishers", preset, {"queues": 4, "service_us": "0,50,500,5000", "rate": 0})
    played = then(played, "publish", count=120)
    for link in ("q1", "q2", "q3", "q4"):
        numbers = [
            row.item.payload
            for row in played.rows
            if row.kind == "transfer" and row.event == RECEIVED and row.link == link
        ]
        assert len(numbers) == len(set(numbers)) == 120
    enqueued = [row.queue for row in played.rows if row.event == "enqueue"]
    assert {name: enqueued.count(name) for name in set(enqueued)} == {
        f"q{number}": 120 for number in (1, 2, 3, 4)
    }


def test_a_slow_socket_loses_nothing():
    """TCP stops the client and lets it go on, many times."""
    played = run("publishers", "rmq4.3", {"socket_octets": 500, "rate": 0})
    played = then(played, "publish", count=300)
    assert sent(played) == 300
    blocked = [row.event for row in played.rows if row.kind == "tcp"]
    assert blocked[:2] == ["block", "unblock"]
    assert blocked.count("block") == blocked.count("unblock") > 10


@pytest.mark.parametrize(
    ("text", "queues", "found"),
    [("50", 3, [50, 50, 50]), ("1, 2,3", 3, [1, 2, 3]), ("0", 1, [0])],
)
def test_service_times_are_one_for_all_or_one_each(text, queues, found):
    """Blanks do not matter."""
    assert service_times(text, queues) == found


@pytest.mark.parametrize("text", ["", "1,2", "x", "-1", "1.5", "9999999", "1,,2", "²"])
def test_other_service_times_are_refused_with_what_is_legal(text):
    """A clear sentence that names the legal range."""
    with pytest.raises(ParameterError, match="legal: one number for all, or 3 separated"):
        service_times(text, 3)


def test_acts_that_are_not_possible_say_what_is():
    """A queue that is not there, a consumer that is not, an alarm that is not on."""
    played = run("publishers", "rmq4.3")
    for name, arguments, text in (
        ("stall", {"queue": "q2"}, "there is no queue q2 in this run; legal: q1"),
        ("publish", {"queue": "q2", "count": 1}, "link q2 is not attached; legal now: q1"),
        ("grant", {"link_credit": 1}, "legal in a run with consumer=True"),
        ("clear", {}, "no alarm is on; legal now: alarm"),
    ):
        with pytest.raises(ActionError, match=text):
            played.act(played.start_seq, name, **arguments)
    twice = then(played, "open_session")
    with pytest.raises(ActionError, match="the second session is there already"):
        then(twice, "open_session")
