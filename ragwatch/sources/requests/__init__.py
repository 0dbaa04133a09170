"""What sources have in common that clients send records to over HTTP: bodies within limits, and a queue of requests."""
