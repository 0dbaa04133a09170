"""How a log is read that nobody has described: what its fields are likely to hold."""
