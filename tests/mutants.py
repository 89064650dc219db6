"""Faults planted in the rules of flow control and of quorum queues, and which test catches each.

    python -m tests.mutants                 every one: its name, and the test that failed
    python -m tests.mutants drain echo      these

A mutant is one piece of a module's text, which stands there once, and what is put in its place. Its
tests run on a copy of the package with that piece changed, and end at the first that fails. If no
test catches it, it has survived, and the exit code is 1: a test is missing.
"""

import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

REPO = Path(__file__).resolve().parent.parent
PACKAGE = REPO / "workbench"

ENDPOINT = ("tests/amqp10", "tests/rules")
RABBITMQ = ("tests/frontends/test_rabbit_publishers.py", "tests/frontends/test_publishers.py")
RAFT = ("tests/queues/test_raft.py", "tests/scenarios/test_quorum_model.py")
SAFETY = ("tests/rules/test_quorum_safety.py",)
WAL = ("tests/queues/test_wal.py", "tests/broker/test_quorum_cluster.py")
FIFO = ("tests/queues/test_quorum_fifo.py", "tests/queues/test_contract.py")
CLIENT = ("tests/broker/test_quorum_client.py",)
CHAIN = ("tests/frontends/test_amqp091_chain.py", "tests/frontends/test_amqp091_books.py")
CHANNELS = ("tests/frontends/test_amqp091_channels.py",)
EMERGENCY = ("tests/frontends/test_amqp091_emergency.py",)
MEMORY = ("tests/broker/test_system_memory.py",)
GROUP = ("tests/broker/test_quorum_cluster.py", "tests/broker/test_quorum_faults.py")


@dataclass(frozen=True)
class Mutant:
    """One fault.

    Attributes:
        name: of the fault, in words.
        module: the file that it is planted in, from the package on.
        right: a piece of that file, which stands there once.
        wrong: what is put in its place.
        tests: files and folders that are to catch it, the likeliest first.
    """

    name: str
    module: str
    right: str
    wrong: str
    tests: tuple[str, ...]


PAGING = ("tests/queues/test_variable_queue.py", "tests/broker/test_message_store.py")
MIRRORS = ("tests/broker/test_mirrors.py",)
FLOW_LIMIT = ("tests/queues/test_flow_limit.py",)
SESSION_010 = ("tests/amqp010",)

MUTANTS = (
    # -- Qpid's watermarks and AMQP 0-10 ---------------------------------------------------------
    Mutant(
        "the seventh message stops the queue", "queues/flow_limit.py",
        "self.count > limits.stop_count", "self.count >= limits.stop_count", FLOW_LIMIT,
    ),
    Mutant(
        "a queue goes on by its size alone", "queues/flow_limit.py",
        "not limits.resume_count or self.count < limits.resume_count", "True", FLOW_LIMIT,
    ),
    Mutant(
        "one queue is enough for a completion", "broker/unconfirmed.py",
        "        if not self._left:\n", "        if self._any or not self._left:\n", FLOW_LIMIT,
    ),
    Mutant(
        "a stopped queue keeps the completion of what has left", "queues/flow_limit.py",
        "if self.stopped and message_id in self.pending:", "if False:", FLOW_LIMIT,
    ),
    Mutant(
        "a window counts what was sent", "peers/client010.py",
        "self.capacity <= len(self.outgoing)", "self.capacity <= self.sent",
        ("tests/scenarios/test_qpid.py",),
    ),
    Mutant(
        "a sync is complete at once", "amqp010/session.py",
        "self.received_incomplete.first == self.pending_syncs[0]", "self.pending_syncs",
        SESSION_010,
    ),
    Mutant(
        "a flow sets credit", "amqp010/credit.py",
        "min(self.allocated + value, UNLIMITED - 1)", "min(value, UNLIMITED - 1)", SESSION_010,
    ),
    # -- links and sessions of AMQP 1.0 ---------------------------------------------------------
    Mutant(
        "credit below 0", "serial.py",
        "return min(max(0, credit), MAX)", "return min(credit, MAX)", ENDPOINT,
    ),
    Mutant(
        "drain keeps the count", "amqp10/flow.py",
        "self.delivery_count = serial.advanced(self.delivery_count, given_back)", "pass", ENDPOINT,
    ),
    Mutant(
        "publisher is not topped up", "frontends/incoming_link.py",
        "        if due and not held:\n", "        if due and not held and not self._credit:\n",
        RABBITMQ,
    ),
    Mutant(
        "window is not opened again", "frontends/windows.py",
        "regrant_at=preset.window_regrant_at,", "regrant_at=None,",
        ("tests/frontends/test_links.py", "tests/frontends"),
    ),
    Mutant(
        "echo is not answered", "frontends/rabbit_outgoing_link.py",
        "self._echo, self._drain = bool(frame.echo), bool(frame.drain)",
        "self._echo, self._drain = False, bool(frame.drain)",
        ("tests/frontends/test_rabbit_consumers.py", "tests/conformance"),
    ),
    # -- credit between processes, and AMQP 0-9-1 -----------------------------------------------
    Mutant(
        "grant is not kept back", "sim/credit_flow.py",
        "        if self.blocked:\n            self.kept.append(grant)\n            return []\n",
        "", CHAIN,
    ),
    Mutant(
        "grant is lost", "sim/actor.py",
        "            self._clock.call_soon(granted, grant, self, priority=REACT)",
        "            assert granted", CHAIN,
    ),
    Mutant(
        "credit per process and not per hop", "sim/credit_flow.py",
        "credit = self.credit_from.get(to, initial)",
        "credit = min(self.credit_from.values(), default=initial)", CHAIN,
    ),
    Mutant(
        "a message to k queues costs one credit", "broker/virtual_host.py",
        "origin=origin, via=via, at_once=at_once)",
        "origin=origin, via=via if queue is queues[0] else None, at_once=at_once)",
        CHAIN,
    ),
    Mutant(
        "an ack spends credit", "frontends/amqp091/connection.py",
        "self._channel(channel).method_came(event)",
        "self.reader.send(\n"
        "                            self._channel(channel).process,\n"
        "                            lambda c=self._channel(channel), e=event: c.method_came(e),\n"
        "                        )",
        CHAIN,
    ),
    Mutant(
        "an alarm sends no connection.blocked", "frontends/amqp091/connection.py",
        "            self.amqp.block(reason)", "            pass", CHAIN,
    ),
    Mutant(
        "a private prefetch is shared", "frontends/amqp091/channel.py",
        'if rule == "channel" or (method.global_ and self._preset.shared_prefetch):', "if True:",
        CHANNELS,
    ),
    Mutant(
        "a cancel requeues", "broker/queue_process.py",
        "self._command(Cancel(consumer=name))", "self._command(DetachConsumer(consumer=name))",
        CHANNELS,
    ),
    # -- paging and mirrors ---------------------------------------------------------------------
    Mutant(
        "phase two ignores the batch size", "queues/variable_queue.py",
        "if surplus <= 0 or surplus < self._io_batch:", "if surplus <= 0:", PAGING,
    ),
    Mutant(
        "pending acknowledgements are always paged first", "queues/variable_queue.py",
        "acks_first = self.rates.acks_first", "acks_first = True", PAGING,
    ),
    Mutant(
        "paging of messages ignores credit", "queues/variable_queue.py",
        "and self._ram_messages > target and not self._disk.blocked",
        "and self._ram_messages > target", PAGING,
    ),
    Mutant(
        "a grant does not let paging go on", "broker/queue_process.py",
        "            bumped=self._reduce,\n", "", PAGING,
    ),
    Mutant(
        "one credit for all mirrors", "broker/mirrors.py",
        "if publish.via is not None:",
        "if publish.via is not None and mirror is next(iter(self.all.values())):", MIRRORS,
    ),
    Mutant(
        "peer_down keeps the block", "sim/credit_flow.py",
        "        return self.unblock(process)", "        return []", MIRRORS,
    ),
    # -- elections ------------------------------------------------------------------------------
    Mutant(
        "vote twice", "queues/raft.py",
        "            and self.voted_for in (None, sender)\n", "", RAFT,
    ),
    Mutant(
        "vote not persisted", "queues/raft.py",
        "self.voted_for if self.rules.vote_is_kept else None", "None", RAFT + SAFETY,
    ),
    Mutant(
        "last term ignored in votes", "queues/raft.py",
        "(last_term, last_index) >= (self.log.last_term, self.log.last_index)",
        "last_index >= self.log.last_index", RAFT,
    ),
    # -- the log --------------------------------------------------------------------------------
    Mutant(
        "commit of an old term's entry by count", "queues/raft.py",
        "rules.own_term_only and self.log.term_at(index) != self.term", "False", RAFT,
    ),
    Mutant(
        "majority taken as half", "queues/raft.py",
        "self.majority = len(members) // 2 + 1", "self.majority = len(members) // 2",
        RAFT,
    ),
    Mutant(
        "written index not cut", "queues/raft.py",
        "                self.written = min(self.written, fresh[0].index - 1)\n", "", RAFT + SAFETY,
    ),
    Mutant(
        "no consistency check", "queues/raft.py",
        "if log.term_at(prev) != message.prev_term:", "if prev > log.last_index:", RAFT,
    ),
    Mutant(
        "gap taken in", "queues/raft.py",
        "if log.term_at(prev) != message.prev_term:",
        "if log.term_at(prev) not in (None, message.prev_term):", RAFT,
    ),
    Mutant(
        "follower commits unverified", "queues/raft.py",
        "commit = min(message.commit, self.verified)", "commit = message.commit", RAFT + SAFETY,
    ),
    Mutant(
        "old AppendEntries truncates what is the same", "queues/raft.py",
        " or not self.rules.cuts_what_differs:", " or True:", RAFT + SAFETY,
    ),
    Mutant(
        "generation ignored", "queues/raft.py",
        "if generation != self.generation:", "if False:", RAFT + SAFETY,
    ),
    # -- the disk -------------------------------------------------------------------------------
    Mutant(
        "fsync told at its begin", "broker/quorum_node.py",
        "self._timer = self._clock.call_later(self.fsync.draw(self._draws), self._synced)",
        "self._synced()",
        GROUP + SAFETY,
    ),
    Mutant(
        "disk drops the last entry", "queues/wal.py",
        "            self._to_disk(writer, entries)\n            done[writer]",
        "            self._to_disk(writer, entries[:-1] or entries)\n            done[writer]",
        WAL + SAFETY,
    ),
    Mutant(
        "WAL order", "queues/wal.py",
        "self._batch.append(self._waiting.popleft())",
        "self._batch.insert(0, self._waiting.popleft())",
        WAL + SAFETY,
    ),
    # -- applying -------------------------------------------------------------------------------
    Mutant(
        "apply reversed", "broker/raft_group.py",
        "entry = log[self.applied]", "entry = log[index - count + index - self.applied + 1]",
        GROUP + SAFETY,
    ),
    Mutant(
        "apply skips one", "broker/raft_group.py",
        "            self.applied += 1\n",
        "            self.applied = min(index, self.applied + 1 + (count > 2))\n",
        GROUP + SAFETY,
    ),
    Mutant(
        "confirm at propose", "broker/raft_group.py",
        "            self.carry_out(self.replica.propose(commands))\n",
        "            self.carry_out(self.replica.propose(commands))\n"
        "            told = {one.client: [(one.seq, None)] for one in commands}\n"
        "            self._group.answer(self._node, self.replica.term, told, [])\n",
        GROUP + SAFETY,
    ),
    Mutant(
        "confirm from a follower", "broker/raft_group.py",
        "leads = replica.role == LEADER", "leads = True", GROUP + SAFETY,
    ),
    # -- the queue ------------------------------------------------------------------------------
    Mutant(
        "no dedupe", "queues/quorum_fifo.py",
        "if logged.seq < expected:", "if False:", FIFO + SAFETY,
    ),
    Mutant(
        "more credit than granted", "queues/consumers.py",
        "command.delivery_count, command.link_credit, self.delivery_count",
        "self.delivery_count, command.link_credit, self.delivery_count", FIFO,
    ),
    Mutant(
        "returns reversed", "queues/ready.py",
        "            self._returned.append(message)\n",
        "            self._returned.appendleft(message)\n",
        FIFO,
    ),
    # -- its client -----------------------------------------------------------------------------
    Mutant(
        "no resend", "broker/quorum_client.py",
        "pending = tuple(self.pending.values())", "pending = ()", CLIENT,
    ),
    Mutant(
        "double delivery after a leader change", "broker/quorum_client.py",
        "if stream is None or effect.number < stream.expected:", "if stream is None:",
        CLIENT + SAFETY,
    ),
    Mutant(
        "neither resume nor gap request", "queues/quorum_fifo.py",
        "for at in held.unsettled if at >= first", "for at in ()", FIFO + GROUP,
    ),
    Mutant(
        "channel.flow is not sent to new channels", "frontends/amqp091/publisher_flow.py",
        "        if alarmed:\n", "        if False:\n", EMERGENCY,
    ),
    Mutant(
        "a publisher that does not answer channel.flow is left alone",
        "frontends/amqp091/publisher_flow.py",
        "self._patience_us, self._too_late, self._wanted", "self._patience_us, bool", EMERGENCY,
    ),
    Mutant(
        "an immediate message waits in its queue", "broker/queue_process.py",
        "if message.at_once and not self._would_go():", "if False:", EMERGENCY,
    ),
    Mutant(
        "a commit of 1.5 overtakes what was published", "frontends/amqp091/channel.py",
        "if self._preset.settles_in_turn and queues:", "if False:", EMERGENCY,
    ),
    Mutant(
        "an alarm is cleared before garbage is collected", "broker/system_memory.py",
        "used = self._last + self.garbage", "used = self._last", MEMORY,
    ),
    Mutant(
        "soft limit lost", "broker/quorum_client.py",
        "if not self.slow and len(self.pending) >= self._soft_limit:", "if False:", CLIENT,
    ),
    Mutant(
        "soft limit off by one", "broker/quorum_client.py",
        "len(self.pending) >= self._soft_limit", "len(self.pending) > self._soft_limit", CLIENT,
    ),
    Mutant(
        "stash lost", "broker/quorum_client.py",
        "            for command in stash:\n", "            for command in ():\n", CLIENT,
    ),
)  # fmt: skip

NAMED = {mutant.name: mutant for mutant in MUTANTS}
FAILED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - |$)", re.MULTILINE)


def planted(mutant: Mutant) -> str:
    """The module's text with the fault in it.

    Raises:
        ValueError: the piece does not stand there exactly once.
    """
    text = (PACKAGE / mutant.module).read_text(encoding="utf-8")
    found = text.count(mutant.right)
    if found != 1:
        raise ValueError(f"{mutant.name}: {mutant.module} has the piece {found} times")
    return text.replace(mutant.right, mutant.wrong)


def caught_by(mutant: Mutant) -> str | None:
    """The first test that fails with the fault planted; None if none does."""
    with TemporaryDirectory() as folder:
        copy = Path(folder) / "workbench"
        shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
        (copy / mutant.module).write_text(planted(mutant), encoding="utf-8")
        ran = subprocess.run(
            [
                sys.executable, "-P", "-m", "pytest", "-x", "-q", "--tb=no", "-m", "not slow",
                "-p", "no:cacheprovider", "-o", "pythonpath=", *mutant.tests,
            ],
            cwd=REPO,
            env={**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{REPO}"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )  # fmt: skip
    if ran.returncode not in (0, 1):
        raise RuntimeError(f"{mutant.name}: pytest ended with {ran.returncode}\n{ran.stdout}")
    failed = FAILED.search(ran.stdout)
    return failed[1] if failed else None


def main(names: list[str]) -> int:
    """Plant the mutants with these names, or all; returns the exit code."""
    unknown = [name for name in names if name not in NAMED]
    if unknown:
        sys.stderr.write(f"no mutant {', '.join(unknown)}; there are: {', '.join(NAMED)}\n")
        return 2
    chosen = [NAMED[name] for name in names] or list(MUTANTS)
    survived = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for mutant, test in zip(chosen, pool.map(caught_by, chosen), strict=True):
            survived += test is None
            sys.stdout.write(f"{mutant.name}: {test or 'SURVIVED'}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{len(chosen) - survived} of {len(chosen)} caught\n")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
