"""AMQP 0-10, sans I/O: values, frames, and the endpoints that exchange them."""
