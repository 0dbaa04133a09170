"""Builds the prompts for one sample, and parses the replies to Evidence, with the claims that all judges read."""
