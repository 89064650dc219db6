"""What RabbitMQ does for AMQP 0-9-1: readers, channels, and the credit between them."""
