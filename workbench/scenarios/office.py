"""Lesson 12: six applications of one broker, of three protocols, each over a connection of its own.

Nobody acts in it. What holds one of them is a number that somebody has set.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Annotated

from workbench.amqp10.credit import TopUpAtHalf
from workbench.frontends.amqp010 import declare_queue, thresholds_of
from workbench.peers import (
    Client,
    Client010,
    Client091,
    Consumer,
    Consumer091,
    Publisher,
    Publisher091,
    Receiver010,
    Sender010,
)
from workbench.presets import INT_MAX, UINT_MAX

from .acts import WIRE_ACTS
from .chain import HopGrant, ProcessCredit
from .credit import client_of, session_settings
from .declare import PRESET, Whole, scenario
from .parameters import Latency, Microseconds, SmallMessageBytes, SocketOctets
from .publishers import slow_queue
from .qpid import Stop, Window, blocked_row
from .world import World, after_all

ORDERS, STOCK, BILLS, MAIL = "orders", "stock", "bills", "mail"
PARCELS, DEPOT = "parcels", "depot"
"""The applications. Each one's connection has its name, and so has its queue; only depot has no
queue of its own: it takes from that of parcels."""
APPLICATIONS = (ORDERS, STOCK, BILLS, MAIL, PARCELS, DEPOT)
Rate = Annotated[int, Whole(1, 100_000, "messages per second")]
US_PER_S = 1_000_000
SETTLED_TRIPS = 4


def _feed(world: World, queue: str, count: int, rate: int) -> None:
    """Messages come into a queue one by one, from somewhere that is not part of the run."""
    for number in range(count):
        world.clock.call_later(number * US_PER_S // rate, world.put_messages, queue)


@scenario("Six applications and one broker", acts=WIRE_ACTS, preset="rmq4.3")
def office(
    world: World,
    messages: Annotated[int, Whole(1, 5_000, "messages"), "that each application moves"] = 4,
    orders_rate: Annotated[Rate, "at which orders has messages to publish"] = 1_000,
    stock_rate: Annotated[Rate, "at which messages for stock come into its queue"] = 1_000,
    bills_rate: Annotated[Rate, "at which bills has messages to publish"] = 1_000,
    mail_rate: Annotated[Rate, "at which messages for mail come into its queue"] = 1_000,
    parcels_rate: Annotated[Rate, "at which parcels has messages to publish"] = 1_000,
    orders_queue_us: Annotated[
        Microseconds, "what the queue of orders takes for each message"
    ] = 50,
    orders_link_credit: Annotated[
        int, Whole(1, INT_MAX, "messages"), "what the broker grants to orders at most"
    ] = PRESET.publisher_credit,
    orders_socket: SocketOctets = 65_536,
    stock_credit: Annotated[
        int, Whole(1, INT_MAX, "messages"), "link-credit that stock grants, renewed at half"
    ] = 100,
    stock_window: Annotated[
        int, Whole(1, UINT_MAX, "frames"), "incoming window of stock's session, renewed at half"
    ] = 100,
    bills_queue_us: Annotated[Microseconds, "what the queue of bills takes for each message"] = 50,
    mail_prefetch: Annotated[
        int, Whole(1, 65_535, "messages"), "deliveries to mail ahead of its acknowledgements"
    ] = 100,
    parcels_window: Annotated[
        Window, "incomplete transfers that parcels allows itself; 0: any number"
    ] = 50,
    parcels_stop: Annotated[
        Stop, "above so many the queue of parcels holds completions; 0: it holds none"
    ] = 300,
    depot_work_us: Annotated[Microseconds, "what depot needs for each parcel"] = 500,
    process_credit: Annotated[
        ProcessCredit, "that a process of the broker gives each other that sends to it, at first"
    ] = PRESET,
    process_regrant_after: HopGrant = PRESET,
    message_bytes: SmallMessageBytes = 100,
    latency_us: Latency = PRESET.wire_latency_us,
) -> None:
    """Orders, bills and parcels publish; stock, mail and depot consume.

    Orders and stock speak AMQP 1.0, bills and mail AMQP 0-9-1, parcels and depot AMQP 0-10; each
    has a connection of its own. What parcels sends goes to depot.
    """
    marks = thresholds_of(world.preset, {"qpid.flow_stop_count": parcels_stop})
    declare_queue(world.broker, PARCELS, marks)
    slow_queue(world, ORDERS, orders_queue_us)
    slow_queue(world, BILLS, bills_queue_us)
    for queue in (STOCK, MAIL):
        world.broker.declare(queue)
    publisher = Publisher(ORDERS, f"/queues/{ORDERS}")
    consumer = Consumer(
        STOCK, f"/queues/{STOCK}", policy=TopUpAtHalf(stock_credit), auto_settle=True
    )
    bills = Publisher091(
        BILLS,
        BILLS,
        body=bytes(message_bytes),
        pause_us=US_PER_S // bills_rate,
        most_unconfirmed=messages,  # it wants confirms, and waits for none
    )
    mail = Consumer091(MAIL, MAIL, prefetch=mail_prefetch)
    parcels = Sender010(
        PARCELS,
        capacity=parcels_window or None,
        body=bytes(message_bytes),
        pause_us=US_PER_S // parcels_rate,
        on_blocked=blocked_row(world, PARCELS),
    )
    depot = Receiver010(DEPOT, PARCELS, capacity=messages, processing_us=depot_work_us)

    def begin() -> None:
        world.mark_start()
        publisher.publish(world.payloads(messages), US_PER_S // orders_rate)
        bills.publish(messages)
        parcels.send([PARCELS] * messages)
        _feed(world, STOCK, messages, stock_rate)
        _feed(world, MAIL, messages, mail_rate)

    def start() -> None:
        # Not before the consumers' first words have come: nothing waits for those.
        world.clock.call_later(SETTLED_TRIPS * latency_us, begin)

    joined = after_all(APPLICATIONS, start)

    window = replace(
        session_settings(world.preset), incoming_window=stock_window, regrant_at=stock_window // 2
    )
    clients: dict[str, Client | Client091 | Client010] = {
        ORDERS: client_of(world, publisher, on_attached=partial(joined, ORDERS)),
        STOCK: client_of(
            world, consumer, session_settings=window, on_attached=partial(joined, STOCK)
        ),
        BILLS: Client091(world.clock, [bills], name=BILLS, on_open=partial(joined, BILLS)),
        MAIL: Client091(world.clock, [mail], name=MAIL, on_open=partial(joined, MAIL)),
        PARCELS: Client010(world.clock, [parcels], name=PARCELS, on_open=partial(joined, PARCELS)),
        DEPOT: Client010(world.clock, [depot], name=DEPOT, on_open=partial(joined, DEPOT)),
    }
    for name, client in clients.items():
        socket = orders_socket if name == ORDERS else 0
        world.connect(client, name, socket, peer=name)
