"""One Raft replica: what it promises, whatever the network and the disks do."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from workbench.queues.raft import (
    CANDIDATE,
    FOLLOWER,
    LEADER,
    PRE_VOTE,
    RIGHT,
    RULES_BROKEN,
    AppendEntries,
    AppendReply,
    Committed,
    ElectionTimer,
    Entry,
    NotLeaderError,
    Persist,
    PreVote,
    PreVoteReply,
    RaftLog,
    Replica,
    RequestVote,
    Send,
    VoteReply,
    Write,
)
from workbench.queues.raft_referee import STAYS_ON_DISK, InvariantBrokenError, Referee

THREE = ("a", "b", "c")


def sends(effects, kind):
    """The messages of one kind, with whom they go to."""
    return [
        (each.to, each.message)
        for each in effects
        if isinstance(each, Send) and isinstance(each.message, kind)
    ]


def leading(members=THREE):
    """A replica `a` that leads in term 1, with its first entry on no disk yet."""
    replica = Replica("a", members)
    replica.timer_expired()
    replica.receive("b", PreVoteReply(0, True, False, 1))
    effects = replica.receive("b", VoteReply(1, True))
    assert replica.role == LEADER
    return replica, effects


def late_entries(rules):
    """A follower with three committed entries on its disk, and then a leader's word of long ago."""
    replica = Replica("b", THREE, rules=rules)
    disks = {"b": RaftLog()}
    referee = Referee(THREE, disks.get)
    entries = [Entry(index, 1, f"m{index}") for index in (1, 2, 3)]

    def hear(count, commit):
        effects = replica.receive("a", AppendEntries(1, 0, 0, tuple(entries[:count]), commit))
        for effect in effects:
            if isinstance(effect, Write):
                disks["b"].overwrite(effect.entries)
                referee.synced("b")
                replica.written_to(effect.entries[-1].index, effect.generation)
            elif isinstance(effect, Committed):
                referee.committed_up_to("b", replica.log, 1, effect.index)

    hear(3, 0)
    hear(3, 3)
    hear(1, 0)
    return replica, disks["b"]


def test_an_old_append_entries_takes_nothing_away_that_is_the_same():
    """Only an entry that differs is cut, with what follows it [the paper's figure 2]."""
    replica, disk = late_entries(RIGHT)
    assert (replica.log.last_index, replica.written, disk.last_index) == (3, 3, 3)
    with pytest.raises(InvariantBrokenError) as caught:
        late_entries(RULES_BROKEN["old-entries-cut-the-log"])
    assert caught.value.invariant == STAYS_ON_DISK


def test_a_candidate_asks_before_it_raises_its_term():
    """Pre-vote: a time-out alone changes no term; a majority of yes does [thesis 9.6]."""
    replica = Replica("a", THREE)
    effects = replica.timer_expired()
    assert (replica.role, replica.term) == (PRE_VOTE, 0)
    assert [to for to, _ in sends(effects, PreVote)] == ["b", "c"]
    effects = replica.receive("c", PreVoteReply(0, True, False, 1))
    assert (replica.role, replica.term) == (CANDIDATE, 1)
    assert effects[0] == Persist(1, "a")
    assert [to for to, _ in sends(effects, RequestVote)] == ["b", "c"]


def test_who_follows_a_leader_says_no_to_a_pre_vote():
    """A replica cut off from the leader alone does not unseat it."""
    replica = Replica("b", THREE)
    replica.receive("a", AppendEntries(1, 0, 0, (), 0))
    ((_, answer),) = sends(replica.receive("c", PreVote(1, 5, 1, 1)), PreVoteReply)
    assert not answer.granted and answer.follows
    cut_off = Replica("c", THREE)
    cut_off.timer_expired()
    assert cut_off.receive("b", PreVoteReply(0, False, True, 1)) == [ElectionTimer(False)]


def test_a_replica_votes_once_in_a_term_and_its_vote_is_on_disk_first():
    """One vote a term: the second candidate gets none, and Persist comes before the answer."""
    replica = Replica("c", THREE)
    effects = replica.receive("a", RequestVote(1, 0, 0))
    kinds = [type(each) for each in effects]
    assert kinds.index(Persist) < kinds.index(Send)
    assert sends(effects, VoteReply) == [("a", VoteReply(1, True))]
    assert sends(replica.receive("b", RequestVote(1, 9, 1)), VoteReply) == [
        ("b", VoteReply(1, False))
    ]


@pytest.mark.parametrize(
    ("last_index", "last_term", "granted"),
    [(2, 2, True), (1, 3, True), (3, 2, True), (1, 2, False), (9, 1, False)],
)
def test_only_a_log_that_is_as_complete_gets_a_vote(last_index, last_term, granted):
    """The later last term wins, then the longer log [paper 5.4.1]."""
    mine = RaftLog([Entry(1, 1, "x"), Entry(2, 2, "y")])
    replica = Replica("c", THREE, log=mine, term=3)
    answers = sends(replica.receive("a", RequestVote(4, last_index, last_term)), VoteReply)
    assert answers == [("a", VoteReply(4, granted))]


def test_a_leader_writes_and_replicates_at_the_same_time():
    """The entry goes to the disk and to the followers together; nobody waits for the other."""
    replica, _ = leading()
    effects = replica.propose(["x"])
    assert isinstance(effects[0], Write)
    assert [to for to, _ in sends(effects, AppendEntries)] == ["b", "c"]


def test_a_follower_reports_an_entry_only_when_it_is_on_its_disk():
    """No answer to the entries; one answer when the fsync is done."""
    follower = Replica("b", THREE)
    taken = follower.receive("a", AppendEntries(1, 0, 0, (Entry(1, 1, "x"),), 0))
    assert [message.match for _, message in sends(taken, AppendReply)] == [0]
    assert [m.match for _, m in sends(follower.written_to(1, 0), AppendReply)] == [1]


def test_the_leader_counts_itself_only_after_its_own_fsync():
    """One follower of two has it: committed only when the leader's disk has it too."""
    replica, _ = leading()
    assert not any(
        isinstance(each, Committed) for each in replica.receive("b", AppendReply(1, True, 0, 1))
    )
    assert Committed(1) in replica.written_to(1, 0)


def test_the_commit_index_is_the_median_of_what_is_on_disk():
    """Five replicas: the third fsync commits, whoever makes it."""
    members = ("a", "b", "c", "d", "e")
    replica = Replica("a", members)
    replica.timer_expired()
    for voter in ("b", "c"):
        replica.receive(voter, PreVoteReply(0, True, False, 1))
    for voter in ("b", "c"):
        replica.receive(voter, VoteReply(1, True))
    replica.propose(["x", "y"])
    replica.receive("b", AppendReply(1, True, 0, 3))
    replica.receive("c", AppendReply(1, True, 0, 2))
    assert replica.commit == 2 - 2
    replica.receive("d", AppendReply(1, True, 0, 1))
    assert replica.commit == 1
    replica.written_to(3, 0)
    assert replica.commit == 2


def test_an_old_term_is_committed_only_with_an_entry_of_the_new_one():
    """Figure 8 of the paper: counting replicas of an old entry is not enough."""
    log = RaftLog([Entry(1, 1, "x")])
    replica = Replica("a", THREE, log=log, term=1)
    replica.timer_expired()
    replica.receive("b", PreVoteReply(1, True, False, 1))
    replica.receive("b", VoteReply(2, True))
    replica.receive("b", AppendReply(2, True, 0, 1))
    assert replica.commit == 0
    replica.written_to(2, 0)
    replica.receive("b", AppendReply(2, True, 0, 2))
    assert replica.commit == 2


def test_what_the_disk_tells_of_an_overwritten_entry_is_not_heeded():
    """An entry that went and came back counts only from its second fsync on."""
    follower = Replica("b", THREE)
    old, other = Entry(1, 1, "x"), Entry(1, 2, "y")
    follower.receive("a", AppendEntries(1, 0, 0, (old,), 0))
    follower.receive("c", AppendEntries(2, 0, 0, (other,), 0))
    follower.receive("a", AppendEntries(3, 0, 0, (old,), 0))
    assert follower.log[1] == old
    assert follower.written_to(1, 0) == [] == follower.written_to(1, 1)
    assert follower.written == 0
    assert [m.match for _, m in sends(follower.written_to(1, 2), AppendReply)] == [1]


def test_entries_are_sent_without_waiting_for_answers_and_in_batches():
    """A pipeline: 300 entries in 3 messages at once; beyond 4096 unanswered it waits."""
    replica, _ = leading()
    replica.receive("b", AppendReply(1, True, 0, 1))
    effects = replica.propose(range(300))
    sizes = [len(m.entries) for to, m in sends(effects, AppendEntries) if to == "b"]
    assert sizes == [128, 128, 44]
    effects = replica.propose(range(6000))
    sent = sum(len(m.entries) for to, m in sends(effects, AppendEntries) if to == "b")
    assert 4096 - 300 <= sent < 4096 + 128


@pytest.mark.parametrize(
    ("terms", "tries"), [((1, 1, 1), 1), ((1,), 2), ((1, 2, 2, 2, 2, 2), 2), ((2, 2), 3)]
)
def test_a_diverged_follower_is_brought_back_in_few_tries(terms, tries):
    """It says where to try again: behind its last entry, or behind what it knows committed."""
    log = RaftLog([Entry(index, 1, "x") for index in (1, 2, 3)])
    leader = Replica("a", THREE, log=log, term=3)
    leader.timer_expired()
    leader.receive("c", PreVoteReply(3, True, False, 1))
    effects = leader.receive("c", VoteReply(4, True))
    stale = Replica(
        "b", THREE, log=RaftLog([Entry(at, term, "x") for at, term in enumerate(terms, 1)])
    )
    made = 0
    while found := [message for to, message in sends(effects, AppendEntries) if to == "b"]:
        made += 1
        answers = sends(stale.receive("a", found[0]), AppendReply)
        effects = [each for _, reply in answers for each in leader.receive("b", reply)]
        if stale.log.entries() == leader.log.entries():
            break
    assert stale.log.entries() == leader.log.entries()
    assert made == tries


def test_a_command_for_a_follower_is_refused_with_the_leader_s_name():
    """The caller learns whom to ask."""
    follower = Replica("b", THREE)
    follower.receive("a", AppendEntries(1, 0, 0, (), 0))
    with pytest.raises(NotLeaderError, match="follows a") as refused:
        follower.propose(["x"])
    assert refused.value.leader == "a"


def test_a_replica_alone_in_its_group_leads_and_commits_by_its_own_fsync():
    """One replica is a majority of one: its own disk is what counts."""
    alone = Replica("a", ("a",))
    alone.timer_expired()
    assert alone.role == LEADER
    alone.propose(["x"])
    assert alone.commit == 0
    assert Committed(2) in alone.written_to(2, 0)


def test_without_a_majority_in_reach_a_replica_does_not_ask():
    """It waits until somebody is back, and no timer runs: a stall, not an error."""
    replica = Replica("a", THREE)
    replica.peer_down("b")
    replica.peer_down("c")
    assert replica.timer_expired() == []
    assert (replica.role, replica.term) == (FOLLOWER, 0)
    assert replica.peer_up("c") == [ElectionTimer(True)]


class AnyNetwork(RuleBasedStateMachine):
    """Three replicas; messages are lost, doubled and overtaken, disks lag, replicas die."""

    def __init__(self):
        super().__init__()
        self.disks = {name: RaftLog() for name in THREE}
        self.meta = dict.fromkeys(THREE, (0, None))
        self.replicas = {name: Replica(name, THREE) for name in THREE}
        self.writes = {name: [] for name in THREE}
        self.network = []
        self.applied = dict.fromkeys(THREE, 0)
        self.count = 0
        self.referee = Referee(THREE, self.disks.get)

    def carry(self, name, effects):
        replica = self.replicas[name]
        for effect in effects:
            match effect:
                case Send(to=to, message=message):
                    self.network.append((name, to, message))
                case Write(entries=entries):
                    self.referee.appended(name, replica.log, entries)
                    self.writes[name].append(effect)
                case Persist(term=term, voted_for=voted_for):
                    self.meta[name] = (term, voted_for)
                case Committed(index=index):
                    self.referee.committed_up_to(name, replica.log, replica.term, index)
                    if replica.role == LEADER:
                        self.referee.answering(name, index)
                case _ if getattr(effect, "role", None) == LEADER:
                    self.referee.led(name, replica.term, replica.log)

    @rule(name=st.sampled_from(THREE))
    def time_out(self, name):
        self.carry(name, self.replicas[name].timer_expired())

    @precondition(lambda self: any(r.role == LEADER for r in self.replicas.values()))
    @rule(which=st.integers(0, 2), many=st.integers(1, 3))
    def propose(self, which, many):
        leaders = [name for name, each in self.replicas.items() if each.role == LEADER]
        name = leaders[which % len(leaders)]
        self.count += many
        self.carry(name, self.replicas[name].propose(range(self.count, self.count + many)))

    @precondition(lambda self: self.network)
    @rule(which=st.integers(0, 1000), twice=st.booleans())
    def arrive(self, which, twice):
        at = which % len(self.network)
        sender, to, message = self.network[at] if twice else self.network.pop(at)
        self.carry(to, self.replicas[to].receive(sender, message))

    @precondition(lambda self: self.network)
    @rule(many=st.integers(1, 12))
    def arrive_in_order(self, many):
        for _ in range(min(many, len(self.network))):
            sender, to, message = self.network.pop(0)
            self.carry(to, self.replicas[to].receive(sender, message))

    @precondition(lambda self: self.network)
    @rule(which=st.integers(0, 1000))
    def lose(self, which):
        self.network.pop(which % len(self.network))

    @rule(name=st.sampled_from(THREE))
    def sync(self, name):
        writes, self.writes[name] = self.writes[name], []
        for write in writes:
            self.disks[name].overwrite(write.entries)
        if writes:
            last = writes[-1]
            self.carry(
                name, self.replicas[name].written_to(last.entries[-1].index, last.generation)
            )

    @rule(name=st.sampled_from(THREE), saved=st.booleans())
    def crash_and_restart(self, name, saved):
        if saved and self.writes[name]:
            self.disks[name].overwrite(self.writes[name][0].entries)
        self.writes[name] = []
        term, voted_for = self.meta[name]
        log = RaftLog(self.disks[name].entries())
        self.replicas[name] = Replica(name, THREE, log=log, term=term, voted_for=voted_for)

    @rule(name=st.sampled_from(THREE), peer=st.sampled_from(THREE), up=st.booleans())
    def told_of_a_peer(self, name, peer, up):
        if name != peer:
            replica = self.replicas[name]
            self.carry(name, replica.peer_up(peer) if up else replica.peer_down(peer))

    @invariant()
    def what_a_replica_calls_written_is_on_its_disk(self):
        for name, replica in self.replicas.items():
            disk = self.disks[name]
            if replica.written:
                assert disk.term_at(replica.written) == replica.log.term_at(replica.written)


AnyNetwork.TestCase.settings = settings(
    derandomize=True, max_examples=60, stateful_step_count=60, deadline=None
)
TestAnyNetwork = AnyNetwork.TestCase
