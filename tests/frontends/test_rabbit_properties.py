"""Random acts of two consumers and a publisher on one session, under RabbitMQ's presets."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.broker.rig import RMQ40, RMQ43, Rig, data
from workbench import presets, serial
from workbench.amqp10.performatives import Disposition, End, Flow, Transfer
from workbench.amqp10.settings import ConnectionSettings
from workbench.frontends import message_of

ACTS = st.one_of(
    st.tuples(st.just("grant"), st.sampled_from([0, 1, 3, 20, 300, 5000]), st.integers(0, 1)),
    st.tuples(st.just("drain"), st.sampled_from([0, 1, 30, 400]), st.integers(0, 1)),
    st.tuples(st.just("echo"), st.just(0), st.integers(0, 1)),
    st.tuples(st.just("window"), st.sampled_from([0, 1, 2, 7, 100, 2000]), st.just(0)),
    st.tuples(st.just("fill"), st.sampled_from([1, 5, 300]), st.integers(0, 1)),
    st.tuples(st.just("publish"), st.sampled_from([1, 40, 120]), st.just(0)),
    st.tuples(st.just("settle"), st.sampled_from([1, 50]), st.integers(0, 1)),
    st.tuples(st.sampled_from(["stall", "resume"]), st.just(0), st.integers(0, 1)),
    st.tuples(st.sampled_from(["alarm", "clear"]), st.just(0), st.integers(0, 1)),
    st.tuples(st.just("rest"), st.just(0), st.just(0)),
    st.tuples(st.just("reattach"), st.just(0), st.integers(0, 1)),
    st.tuples(st.just("steps"), st.sampled_from([1, 5, 40]), st.just(0)),
)


class Play:
    """One run of random acts, with what has to hold at any time."""

    def __init__(self, preset: presets.Preset, frame_size: int, latency_us: int) -> None:
        self.preset = preset
        self.rig = Rig(preset, latency_us=latency_us)
        for queue in "ab":
            self.rig.fill(queue, 50)
        options = {"settings": ConnectionSettings(max_frame_size=frame_size)}
        self.client, self.session = self.rig.raw(**options)
        self.links = [self.rig.receiver(self.session, name, name) for name in "ab"]
        self.publisher = self.rig.sender(self.session, "a", "p")
        self.generation = self.sent = 0

    def do(self, act: str, number: int, who: int) -> None:
        rig, link = self.rig, self.links[who]
        match act:
            case "grant" if link.attached:
                link.grant(number)
            case "drain" if link.attached:
                link.grant(number, drain=True)
            case "echo" if link.attached:
                link.flow(echo=True)
            case "window":
                self.session.set_incoming_window(number)
                self.session.flow()
            case "fill":
                rig.broker.queues["ab"[who]].fill([message_of(b"x" * 700)] * number)
                rig.broker.queues["ab"[who]].kick()
            case "publish":
                for _ in range(number):
                    if self.publisher.can_send:
                        assert self.session.counters.remote_incoming_window > 0
                        self.publisher.send(data(b"m"))
                        self.sent += 1
            case "settle" if link.attached:
                for delivery_id in list(link.unsettled)[:number]:
                    if link.unsettled[delivery_id].complete:
                        link.settle(delivery_id)
            case "stall":
                rig.broker.queues["ab"[who]].stall()
            case "resume":
                rig.broker.queues["ab"[who]].resume()
            case "alarm":
                rig.broker.set_alarm(("memory", "disk")[who])
            case "clear":
                rig.broker.clear_alarm(("memory", "disk")[who])
            case "rest":
                rig.rest()
            case "reattach":
                rig.rest()
                link.close()
                rig.rest()
                self.generation += 1
                name = f"{'ab'[who]}{self.generation}"
                self.links[who] = rig.receiver(self.session, "ab"[who], name)
            case "steps":
                for _ in range(number):
                    rig.clock.step()
        self.check()

    def check(self) -> None:
        """Invariants 5, 7 and 8, and that no message is lost, after every act."""
        (session,) = self.rig.broker.connections["c1"].amqp.sessions
        assert session.counters.remote_incoming_window >= 0
        assert session.counters.frames_in <= session.counters.frames_allowed
        assert 0 <= session.counters.incoming_window <= self.preset.incoming_window
        assert 0 <= self.publisher.credit <= self.preset.publisher_credit
        for host in self.rig.broker.connections["c1"].hosts.values():
            picture = host.overview()
            if "buffered" in picture:
                assert 0 <= picture["buffered"] <= self.preset.max_queue_credit
                assert picture["link_credit"] >= 0
            else:
                assert picture["unconfirmed"] <= 2 * self.preset.publisher_credit - 1
        for name in "ab":
            queue = self.rig.queue(name)
            assert queue.ready + queue.unsettled + queue.terminal == queue.enqueued

    def finish(self) -> None:
        """At rest with everything open each end agrees with the other, and nothing is left over."""
        for resource in ("memory", "disk"):
            self.rig.broker.clear_alarm(resource)
        for name in "ab":
            self.rig.broker.queues[name].resume()
        self.rig.rest()
        self.session.set_incoming_window(100_000)
        self.session.flow()
        self.rig.rest()
        assert self.client.frames(End) == []
        hosts = self.rig.broker.connections["c1"].hosts
        own = {link.name: link for link in hosts}
        for who, link in enumerate(self.links):
            theirs = own[link.name]
            assert link.delivery_count == theirs.delivery_count
            assert link.credit == theirs.credit
            assert hosts[theirs].overview()["buffered"] == 0
            ready = self.rig.queue("ab"[who]).ready
            assert link.credit == 0 or ready == 0
        assert self.publisher.unsettled == {}
        assert self.publisher.credit > self.preset.publisher_credit // 2
        assert self.session.counters.remote_incoming_window > self.preset.incoming_window // 2
        told = [
            serial.add(said.first, step)
            for said in self.client.frames(Disposition)
            for step in range(
                serial.diff(said.first if said.last is None else said.last, said.first) + 1
            )
        ]
        assert sorted(told) == list(range(self.sent)), "each is confirmed once"
        began = [said.delivery_id for said in self.client.frames(Transfer)]
        ids = [one for one, last in zip(began, [None, *began], strict=False) if one != last]
        assert [serial.diff(one, ids[0]) for one in ids] == list(range(len(ids)))


SERVICE = st.sampled_from([0, 0, 5, 300])


@settings(max_examples=200, deadline=None)
@given(
    st.lists(ACTS, min_size=10, max_size=50),
    st.sampled_from([RMQ40, RMQ43, replace(RMQ43, max_queue_credit=3)]),
    st.sampled_from([512, 65536]),
    st.sampled_from([0, 200, 3000]),
    st.fixed_dictionaries({"reader_us": SERVICE, "session_us": SERVICE, "writer_us": SERVICE}),
)
def test_invariants_5_7_8_and_15_hold_under_random_acts(
    acts, preset, frame_size, latency_us, service
) -> None:
    """At most 256 wait in a session per consumer, 339 are unconfirmed; both ends agree at rest.

    Whatever time each process needs: that moves things in time, not in order. A publisher that
    obeys is never ended.
    """
    play = Play(replace(preset, **service), frame_size, latency_us)
    for act in acts:
        play.do(*act)
    play.finish()


@settings(max_examples=60, deadline=None)
@given(st.lists(ACTS, max_size=25))
def test_invariant_8_delivery_count_moves_only_when_frames_leave(acts) -> None:
    """Or with a drain's answer: replayed from the frames that the client heard, it is the same."""
    play = Play(RMQ40, 65536, 0)
    for act in acts:
        if act[0] != "reattach":
            play.do(*act)
    play.rig.rest()
    session = play.rig.broker.connections["c1"].amqp.sessions[0]
    counts = dict.fromkeys((0, 1), RMQ40.initial_delivery_count)
    for item in play.client.received:
        said = getattr(item, "performative", None)
        if isinstance(said, Transfer):
            counts[said.handle] = serial.add(counts[said.handle], 1)
        elif isinstance(said, Flow) and said.available is not None:
            assert serial.diff(said.delivery_count, counts[said.handle]) >= 0
            assert said.drain or said.delivery_count == counts[said.handle]
            counts[said.handle] = said.delivery_count
    assert [session.handles[handle].delivery_count for handle in (0, 1)] == list(counts.values())


SOME_ACTS = [
    ("grant", 300, 0), ("window", 7, 0), ("fill", 300, 0), ("drain", 30, 1), ("steps", 40, 0),
    ("grant", 20, 0), ("window", 100, 0), ("rest", 0, 0), ("echo", 0, 1), ("publish", 40, 0),
]  # fmt: skip


def heard(start: int) -> list[object]:
    """What the client heard, counted from where the numbers start."""
    preset = replace(RMQ43, initial_delivery_count=start, initial_next_outgoing_id=start)
    play = Play(preset, 512, 200)
    for act in SOME_ACTS:
        play.do(*act)
    play.finish()
    found: list[object] = []
    for item in play.client.received:
        said = getattr(item, "performative", None)
        if isinstance(said, Flow):
            own = serial.diff(said.delivery_count, start) if said.available is not None else None
            at = serial.diff(said.next_outgoing_id, start)
            found.append((at, own, said.link_credit, said.available, said.incoming_window))
        elif said is not None:
            found.append((type(said).__name__, len(item.payload)))
    return found


@pytest.mark.parametrize("start", [10, 2147483640, 4294967290])
def test_invariant_4_the_initial_numbers_change_nothing(start) -> None:
    """The same acts from other sequence numbers give the same frames, credits and windows."""
    assert heard(start) == heard(0)
    assert len(heard(0)) > 400
