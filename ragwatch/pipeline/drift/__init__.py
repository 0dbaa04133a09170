"""Detection of drift: of scores, of traffic and of judges."""
