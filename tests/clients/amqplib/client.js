// A client for the test: speaks AMQP 0-9-1 with amqplib, and prints what came of it as JSON.
// node client.js '{"act": "work", "port": 5672, "count": 10, "prefetch": 5}'
"use strict";

const options = JSON.parse(process.argv[2]);
const amqplib = require("amqplib");

const url = "amqp://guest:guest@127.0.0.1:" + options.port;
const result = {heard: []};

async function consume(channel) {
    await channel.prefetch(options.prefetch);
    const bodies = [];
    await new Promise(function (resolve, reject) {
        channel.consume("q", function (message) {
            if (message === null) return;
            channel.ack(message);
            bodies.push(Number(message.content));
            if (bodies.length === options.count) resolve();
        }, {consumerTag: "t"}).catch(reject);
    });
    return bodies;
}

const acts = {
    // Declares, publishes with confirms, consumes with prefetch, cancels.
    work: async function () {
        const connection = await amqplib.connect(url);
        const channel = await connection.createConfirmChannel();
        await channel.assertQueue("q", {durable: true});
        for (let number = 0; number < options.count; number++) {
            channel.sendToQueue("q", Buffer.from(String(number)));
        }
        await channel.waitForConfirms();
        result.bodies = await consume(channel);
        await channel.cancel("t");
        await channel.close();
        await connection.close();
    },
    // A message that has no queue comes back; a queue that is not there closes the channel.
    wrong: async function () {
        const connection = await amqplib.connect(url);
        const channel = await connection.createConfirmChannel();
        channel.on("return", function (message) {
            result.heard.push(message.fields.replyText);
        });
        channel.publish("", "nowhere", Buffer.from("x"), {mandatory: true});
        await channel.waitForConfirms();
        channel.on("error", function (error) { result.heard.push(error.code); });
        await channel.checkQueue("nowhere").catch(function () {});
        await connection.close();
    },
    // Publishes under an alarm, and hears of its end.
    blocked: async function () {
        const connection = await amqplib.connect(url);
        connection.on("blocked", function (reason) {
            result.heard.push(reason);
            console.log("blocked");
        });
        const channel = await connection.createConfirmChannel();
        await channel.assertQueue("q", {durable: true});
        const over = new Promise(function (resolve) { connection.on("unblocked", resolve); });
        channel.sendToQueue("q", Buffer.from("0"));
        await over;
        await channel.waitForConfirms();
        await connection.close();
    },
    // Cut while it waits for messages, it connects again.
    again: async function () {
        const connection = await amqplib.connect(url);
        connection.on("error", function () {});
        const channel = await connection.createChannel();
        await channel.assertQueue("q", {durable: true});
        const gone = new Promise(function (resolve) { connection.once("close", resolve); });
        await channel.consume("q", function () {});
        console.log("ready");
        await gone;
        const anew = await amqplib.connect(url);
        const second = await anew.createConfirmChannel();
        second.sendToQueue("q", Buffer.from("7"));
        options.count = 1;
        result.bodies = await consume(second);
        await second.close();
        await anew.close();
    },
};

acts[options.act]().then(
    function () { console.log(JSON.stringify(result)); },
    function (error) { console.error(error); process.exit(1); });
