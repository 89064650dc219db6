"""What a connection of any protocol needs of a stream of octets: items cut out, silence watched."""
