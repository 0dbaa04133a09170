"""The pipeline: loops, one file a story. Each is a `step()` that the daemon repeats and tests call. Knows no kind."""
