"""Sources that read from a message broker: one consumer over a thin client for each kind of broker."""
