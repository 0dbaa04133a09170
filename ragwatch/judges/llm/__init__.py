"""Code that all LLM judges share."""
