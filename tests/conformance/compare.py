"""Run the scenarios against a broker on this machine and compare what it sends with what RabbitMQ sent.

    python -m tests.conformance.compare --port 5672
    python -m tests.conformance.compare --port 5672 --full credit_lowered ttl      these alone, and every field

The broker must let guest in with the password guest (SASL PLAIN). The exit status is 1 if any scenario differs.

A file of known differences (--allow) has one in each line, with the reason:

    SCENARIO :: STEP :: CONNECTION :: WHAT :: REASON

--keys prints the differences in that form; the first four may be *. A line whose difference is no longer seen makes
its scenario differ, so that the file stays true; one for all scenarios (*) must be seen in one of them.
"""

import argparse
import importlib
import json
import socket
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .driver import SCENARIOS, AtPort, compare_runs, normalise, only_in_full, run_scenario

HERE = Path(__file__).resolve().parent
RECORDED = HERE / "recorded"

for module in sorted(HERE.glob("scenarios_*.py")):
    importlib.import_module(f".{module.stem}", __package__)


def add_common_arguments(parser):
    """Arguments that recording and comparing share."""
    parser.add_argument("--port", type=int, required=True, help="port of the broker on 127.0.0.1")
    parser.add_argument("--silence", type=float, default=0.25, help="seconds of silence that end a step (0.25)")
    parser.add_argument("--jobs", type=int, default=1, help="how many scenarios to run at the same time (1)")
    parser.add_argument("names", nargs="*", help="scenarios; all of them if none is named")


def choose(parser, names):
    """The scenarios that are asked for; ends with a message if there is no such one."""
    for name in names:
        if name not in SCENARIOS:
            parser.error(f"no scenario {name}; there are {', '.join(sorted(SCENARIOS))}")
    return list(dict.fromkeys(names)) or list(SCENARIOS)


def run_many(names, arguments):
    """Run scenarios; yield name and run, in order."""
    with ThreadPoolExecutor(arguments.jobs) as pool:
        futures = [(name, pool.submit(run_scenario, name, AtPort(arguments.port), arguments.silence)) for name in names]
        for name, future in futures:
            yield name, future.result()


class Known:
    """A line of the file of known differences."""

    def __init__(self, line, number):
        parts = [part.strip() for part in line.split(" :: ")]
        if len(parts) != 5 or not all(parts):
            raise ValueError(f"line {number}: not of the form SCENARIO :: STEP :: CONNECTION :: WHAT :: REASON")
        self.scenario, self.step, self.connection, self.what, self.reason = parts
        if self.scenario != "*" and self.scenario not in SCENARIOS:
            raise ValueError(f"line {number}: no scenario {self.scenario}")
        self.number = number
        self.seen = False

    def covers(self, scenario, difference):
        """Whether this is the difference."""
        pairs = (
            (self.scenario, scenario),
            (self.step, difference.step),
            (self.connection, difference.connection),
            (self.what, difference.what),
        )
        return all(mine in ("*", its) for mine, its in pairs)

    def is_due(self, scenario, full):
        """Whether a run of that scenario (* for all) has to show this difference."""
        frame, _, path = self.what.partition(".")
        return self.scenario == scenario and (full or not only_in_full(frame, path))


def read_known(path):
    """The lines of a file of known differences."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [Known(line, number) for number, line in enumerate(lines, 1) if line.strip() and not line.startswith("#")]


def compare(name, run, known, *, full=False, keys=False):
    """Compare a run with what is recorded of its scenario.

    Args:
        name: of the scenario.
        run: of it.
        known: known differences; those that are seen are marked.
        full: compare every field.
        keys: put the differences as lines of a file of known ones.

    Returns:
        Whether it is the same, and lines about it.
    """
    path = RECORDED / f"{name}.json"
    if not path.exists():
        return False, [f"differs  {name}: not recorded"]
    recorded = json.loads(path.read_text(encoding="utf-8"))
    differences, notes = compare_runs(recorded, normalise(run), full)
    unknown = []
    for difference in differences:
        covering = [one for one in known if one.covers(name, difference)]
        for one in covering:
            one.seen = True
        if not covering:
            unknown.append(difference)
    unseen = [one for one in known if not one.seen and one.is_due(name, full)]
    same = not unknown and not unseen
    allowed = len(differences) - len(unknown)
    lines = [f"{'same   ' if same else 'differs'}  {name}" + (f" ({allowed} known differences)" if allowed else "")]
    for difference in unknown:
        if keys:
            lines.append(f"{difference.key(name)} :: ")
        else:
            lines.append(f"    [{difference.step}] {difference.connection}: {difference.words}")
    for one in unseen:
        lines.append(f"    known difference of line {one.number} is no longer seen: {one.step} :: {one.what}")
    if not keys:
        lines += [f"    (text only) [{note.step}] {note.connection}: {note.words}" for note in notes]
        if run.failure:
            lines.append("    the scenario could not go on: " + run.failure.strip().splitlines()[-1])
    return same, lines


def main():
    """Compare what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_common_arguments(parser)
    parser.add_argument("--full", action="store_true", help="compare every field, and show differing error texts")
    parser.add_argument("--allow", type=Path, metavar="FILE", help="file of known differences")
    parser.add_argument("--keys", action="store_true", help="print differences as lines for that file")
    arguments = parser.parse_args()
    names = choose(parser, arguments.names)
    try:
        known = read_known(arguments.allow) if arguments.allow else []
        socket.create_connection(("127.0.0.1", arguments.port), timeout=5).close()
    except (OSError, ValueError) as error:
        parser.error(str(error))
    results = []
    for name, run in run_many(names, arguments):
        same, lines = compare(name, run, known, full=arguments.full, keys=arguments.keys)
        print(*lines, sep="\n", flush=True)
        results.append(same)
    unseen = [] if arguments.names else [line for line in known if not line.seen and line.is_due("*", arguments.full)]
    for line in unseen:
        print(f"known difference of line {line.number} is seen nowhere: {line.what}")
    print(f"{results.count(True)} same, {results.count(False)} differ")
    return 0 if all(results) and not unseen else 1


if __name__ == "__main__":
    sys.exit(main())
