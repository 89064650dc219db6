"""AMQP 1.0, sans I/O: values, frames, and the endpoints that exchange them."""
