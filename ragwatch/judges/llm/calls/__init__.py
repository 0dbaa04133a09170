"""Calls to a provider: scheduling, rate limits, circuit breaker, retries, cost."""
