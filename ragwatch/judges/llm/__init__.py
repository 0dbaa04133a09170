"""LLM judges: what kinds that ask a model share."""
