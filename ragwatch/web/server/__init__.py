"""The servers: connections, TLS, limits."""
