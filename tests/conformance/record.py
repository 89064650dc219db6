"""Run the scenarios against a real RabbitMQ, several times each, and keep what it sends in recorded/NAME.json.

    python -m tests.conformance.record --port 5672
    python -m tests.conformance.record --port 5672 credit_lowered ttl      these alone

What differs between the repetitions is kept, but marked, and `compare` does not look at it: a field under
`varies` of its frame, or, where not even the same frames came, all that came in a step on a connection, under
`deterministic: false` with all the variants. `agreed` says how many repetitions were alike in full.
"""

import argparse
import json
import sys
from collections import Counter

from .compare import RECORDED, add_common_arguments, choose, run_many
from .driver import SCENARIOS, AtPort, Run, counted, differing_paths, normalise


def product(port):
    """Product and version of the broker; None if it is not a RabbitMQ server.

    Other brokers may call themselves RabbitMQ, but hardly name a cluster and the platform that they run on.
    """
    run = Run(AtPort(port))
    run.connection()
    run.finish()
    for step in normalise(run):
        for entry in step["connections"]["A"]:
            if entry["frame"] == "open" and {"cluster_name", "platform"} <= set(entry["fields"]["property-names"]):
                return f"{entry['fields']['product']} {entry['fields']['version']}"
    return None


def merge_connection(variants):
    """What came in one step on one connection, from all the repetitions."""
    texts = [json.dumps(frames, sort_keys=True) for frames in variants]
    most_common, agreed = Counter(texts).most_common(1)[0]
    frames = json.loads(json.dumps(variants[texts.index(most_common)]))
    merged = {"agreed": agreed}
    sequences = [[entry["frame"] for entry in frames] for frames in variants]
    if any(sequence != sequences[0] for sequence in sequences):
        merged["deterministic"] = False
        merged["variants"] = [counted(sequence) for sequence in sequences]
    elif agreed < len(variants):
        for number, entry in enumerate(frames):
            paths = {path for other in variants for path, _, _ in differing_paths(entry, other[number])}
            if paths:
                entry["varies"] = sorted(paths)
    merged["frames"] = frames
    return merged


def merge(name, broker, repetitions):
    """The recorded scenario from its normalised repetitions."""
    steps = []
    for step in repetitions[0]:
        same_step = [
            next((other["connections"] for other in repetition if other["step"] == step["step"]), {})
            for repetition in repetitions
        ]
        connections = sorted({connection for connections in same_step for connection in connections})
        merged = {
            connection: merge_connection([connections.get(connection, []) for connections in same_step])
            for connection in connections
        }
        steps.append({"step": step["step"], "connections": merged})
    about = (SCENARIOS[name].__doc__ or "").split("\n")[0]
    return {
        "scenario": name,
        "about": about,
        "broker": broker,
        "repetitions": len(repetitions),
        "steps": steps,
    }


def to_text(recorded):
    """JSON with one frame a line."""

    def line(value):
        return json.dumps(value, ensure_ascii=False)

    lines = ["{"]
    lines += [f" {line(key)}: {line(value)}," for key, value in recorded.items() if key != "steps"]
    lines.append(' "steps": [')
    steps = []
    for step in recorded["steps"]:
        connections = []
        for connection, entry in step["connections"].items():
            head = "".join(f"{line(key)}: {line(value)}, " for key, value in entry.items() if key != "frames")
            frames = ",\n".join(f"    {line(frame)}" for frame in entry["frames"])
            connections.append(f'   {line(connection)}: {{{head}"frames": [' + (f"\n{frames}" if frames else "") + "]}")
        body = ",\n".join(connections)
        steps.append(f'  {{"step": {line(step["step"])}, "connections": {{' + (f"\n{body}" if body else "") + "}}")
    lines.append(",\n".join(steps))
    return "\n".join([*lines, " ]", "}"]) + "\n"


def doubtful(recorded):
    """What of a recorded scenario is not compared, in words."""
    for step in recorded["steps"]:
        for connection, entry in step["connections"].items():
            where = f"[{step['step']}] {connection}"
            if not entry.get("deterministic", True):
                yield f"{where}: not deterministic: {' | '.join(dict.fromkeys(entry['variants']))}"
            for frame in entry["frames"]:
                if frame.get("varies"):
                    yield f"{where}: {frame['frame']}: varies: {', '.join(frame['varies'])}"


def main():
    """Record what is asked for; 1 if something could not be recorded."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_common_arguments(parser)
    parser.add_argument("--repetitions", type=int, default=3, help="how often each scenario is run (3)")
    arguments = parser.parse_args()
    names = choose(parser, arguments.names)
    try:
        broker = product(arguments.port)
    except OSError as error:
        parser.error(str(error))
    if broker is None:
        parser.error("the broker is no RabbitMQ server")
    RECORDED.mkdir(exist_ok=True)
    repetitions = {name: [] for name in names}
    failures = 0
    for _ in range(arguments.repetitions):
        for name, run in run_many(names, arguments):
            repetitions[name].append(normalise(run))
            if run.failure:
                print(run.failure)
                failures += 1
    for name in names:
        recorded = merge(name, broker, repetitions[name])
        (RECORDED / f"{name}.json").write_text(to_text(recorded), encoding="utf-8")
        print(name)
        for words in doubtful(recorded):
            print("   ", words)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
