"""The live broker over AMQP 0-9-1 with pika, beside what RabbitMQ was measured to do.

    python benchmarks/live_broker_091.py [--messages N] [--rounds N] [--preset NAME]

One client, a process of its own, over loopback; durable messages of 100 octets to one classic
queue. Measured: a raw socket that publishes without confirms, and pika: publishing without
confirms, publishing with confirms one by one, and consuming with prefetch 200, each message
acknowledged. Every broker is a process too: `workbench serve`, and `workbench serve --trace` which
records all; they take turns within each round. Printed are messages per second, the CPU time of
the broker's process per message, and RabbitMQ's figure where there is one.

RabbitMQ 4.3.6 on a machine with 2 cores, everything on loopback, one run each: a raw socket filled
it at 108,600 messages a second; pika published 166,904 and 160,865 in 10 s to two queues; in the
capture rmq43_k1_amqp091_client_pika half of the confirms came within 133 us of their publish. pika
waits for a confirm longer than that, for its own share of it.
"""

import argparse
import contextlib
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pika

REPO = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(REPO), str(REPO / "benchmarks")]

from hostile_load import dial_091, hear_091, octets_091  # noqa: E402
from live_broker import TIMEOUT_S, Broker  # noqa: E402

from workbench.amqp091 import methods as m  # noqa: E402
from workbench.amqp091.frame import ContentHeader, Frame  # noqa: E402

BODY = bytes(100)
QUEUE = "bench091"
PREFETCH = 200
DURABLE = pika.BasicProperties(delivery_mode=2)
RABBITMQ = {"raw": 108_600, "publish": (166_904 + 160_865) / 10, "confirm": 1e6 / 133}
"""Messages a second; of `confirm` what the broker's share of the time would allow."""
WORDS = {
    "raw": "raw socket, no confirms",
    "publish": "pika, no confirms",
    "confirm": "pika, confirms one by one",
    "consume": f"pika, consumes with prefetch {PREFETCH}",
}


# -- the clients, each a process ------------------------------------------------------------------


def raw(host, port, count):
    """Publish as fast as the socket takes it; over when the queue has been asked after it."""
    with contextlib.ExitStack() as stack:
        server = argparse.Namespace(host=host, port=port)
        declare = Frame(1, m.QueueDeclare(queue=QUEUE, durable=True))
        sock = dial_091(server, stack, declare)
        hear_091(sock, "queue.declare-ok")
        header = ContentHeader(body_size=len(BODY), properties=m.Properties(delivery_mode=2))
        publish = Frame(1, m.BasicPublish(routing_key=QUEUE))
        each = octets_091(publish, Frame(1, header), Frame(1, BODY))
        yield
        for at in range(0, count, 100):
            sock.sendall(each * min(100, count - at))
        sock.sendall(octets_091(Frame(1, m.QueueDeclare(queue=QUEUE, passive=True))))
        hear_091(sock, "queue.declare-ok")
        yield


def with_pika(role, host, port, count):
    """One of pika's three."""
    connection = pika.BlockingConnection(
        pika.ConnectionParameters(host, port, socket_timeout=TIMEOUT_S)
    )
    channel = connection.channel()
    channel.queue_declare(QUEUE, durable=True)
    if role == "confirm":
        channel.confirm_delivery()
    channel.basic_qos(prefetch_count=PREFETCH)
    yield
    if role == "consume":
        for done, (method, _, _) in enumerate(channel.consume(QUEUE), 1):
            channel.basic_ack(method.delivery_tag)
            if done == count:
                break
        channel.cancel()
    else:
        for _ in range(count):
            channel.basic_publish("", QUEUE, BODY, DURABLE)
    channel.queue_declare(QUEUE, passive=True)  # answered when all before it was taken in
    yield
    connection.close()


def client(role, host, port, count):
    """What a client's process does: the seconds that it took are printed."""
    work = raw(host, port, count) if role == "raw" else with_pika(role, host, port, count)
    next(work)
    began = time.monotonic()
    next(work)
    print(time.monotonic() - began, flush=True)
    next(work, None)


# -- measuring ------------------------------------------------------------------------------------


def rate(role, broker, count):
    """Messages per second, and the broker's microseconds of CPU per message."""
    before = broker.cpu_s()
    command = [sys.executable, __file__, "--role", role, "--messages", str(count)]
    command += ["--url", f"{broker.host}:{broker.port}"]
    took = float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return count / took, (broker.cpu_s() - before) / count * 1e6


def empty(broker):
    """Leave no message of a round to the next."""
    with contextlib.ExitStack() as stack:
        declare = Frame(1, m.QueueDeclare(queue=QUEUE, durable=True))
        sock = dial_091(broker, stack, declare, Frame(1, m.QueuePurge(queue=QUEUE)))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        hear_091(sock, "queue.purge-ok")


def main():
    """Run the command line described at the top of this file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--messages", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--preset", default="rmq4.3")
    parser.add_argument("--role", choices=WORDS, help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.role:
        host, port = options.url.rsplit(":", 1)
        client(options.role, host, int(port), options.messages)
        return
    names = ("ours", "ours, recording")
    found = {}
    with contextlib.ExitStack() as stack:
        brokers = [stack.enter_context(Broker(name, options.preset)) for name in names]
        for number in range(options.rounds + 1):
            # The first round warms up. What the publishers leave is what the consumer gets.
            count = options.messages if number else max(1, options.messages // 10)
            for role in WORDS:
                for broker in brokers:
                    measured = rate(role, broker, count)
                    if number:
                        found.setdefault((role, broker.name), []).append(measured)
            for broker in brokers:
                empty(broker)
    for role, words in WORDS.items():
        print(words)
        for name in names:
            speed = statistics.median(one for one, _ in found[role, name])
            cpu = statistics.median(one for _, one in found[role, name])
            told = f"  {name:16} {speed:8,.0f} msg/s  {cpu:6.1f} us CPU/message"
            if role in RABBITMQ:
                told += f"   {speed / RABBITMQ[role]:.2f}x of RabbitMQ's {RABBITMQ[role]:,.0f}"
            print(told)


if __name__ == "__main__":
    main()
