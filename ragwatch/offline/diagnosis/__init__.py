"""The checklist for debugging retrieval: each check over stored samples and canaries, with evidence and remedy."""
