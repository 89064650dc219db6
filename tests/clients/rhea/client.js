// A client for the test: sends, receives or drains with rhea, and prints what came of it as JSON.
// node client.js '{"act": "send", "port": 5672, "address": "/queues/q", "count": 10}'
"use strict";

const options = JSON.parse(process.argv[2]);
const container = require("rhea");

const connection = container.connect({
    host: "127.0.0.1",
    port: options.port,
    username: "anonymous",
    reconnect: true,
    initial_reconnect_delay: 20,
    max_reconnect_delay: 100,
});
const result = {opened: 0, errors: []};

function done() {
    connection.close();
    console.log(JSON.stringify(result));
}

connection.on("connection_open", function () {
    result.opened += 1;
    if (result.opened === 1) acts[options.act]();
});
for (const name of ["connection_error", "session_error", "sender_error", "receiver_error"]) {
    connection.on(name, function (context) {
        const of = context.receiver || context.sender || context.session || context.connection;
        result.errors.push(name + ": " + of.error);
        done();
    });
}

const acts = {
    // Numbers in order; what is not settled when the connection breaks is sent again, for nobody
    // knows whether it has arrived.
    send: function () {
        const sender = connection.open_sender(options.address);
        const under_way = new Map();
        let waiting = Array.from({length: options.count}, (_, number) => number).reverse();
        result.accepted = [];
        result.most_credit = 0;
        sender.on("sendable", function () {
            result.most_credit = Math.max(result.most_credit, sender.credit);
            while (sender.sendable() && waiting.length) {
                const number = waiting.pop();
                under_way.set(sender.send({body: number}), number);
            }
        });
        sender.on("accepted", function (context) {
            result.accepted.push(under_way.get(context.delivery));
            under_way.delete(context.delivery);
            if (result.accepted.length === options.count) done();
        });
        connection.on("disconnected", function () {
            waiting = waiting.concat(Array.from(under_way.values()).reverse());
            under_way.clear();
        });
    },
    receive: function () {
        result.bodies = [];
        const seen = new Set();
        const receiver = connection.open_receiver({
            source: {address: options.address},
            credit_window: options.credit,
        });
        receiver.on("message", function (context) {
            result.bodies.push(context.message.body);
            seen.add(context.message.body);
            if (seen.size === options.count) setImmediate(done);
        });
    },
    drain: function () {
        result.bodies = [];
        const receiver = connection.open_receiver({
            source: {address: options.address},
            credit_window: 0,
        });
        receiver.on("receiver_open", function () {
            receiver.add_credit(options.credit);
            receiver.drain_credit();
        });
        receiver.on("message", function (context) {
            result.bodies.push(context.message.body);
        });
        receiver.on("receiver_drained", function () {
            result.left = receiver.credit;
            done();
        });
    },
};
