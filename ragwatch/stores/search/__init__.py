"""Search of stored answers by words, and its index."""
