"""Constants that all kinds of stores have in common."""

from __future__ import annotations

MINUTE, DAY = 60.0, 86400.0

MAX_LEASED_CHARS = 8 << 20  # of texts leased at a time; the last draw may exceed it
MAX_RUNS_BYTES = 8 << 20  # of runs read at a time: a suite may store whole answers
MAX_RUNS_SHARE = 0.25  # of the allowed bytes, so that canary runs do not evict verdicts
MAX_DAMAGED_ROWS = 10_000  # rows that are remembered; beyond that an exact count is of no use
MAX_SPENDING_AGE_SECONDS = 8 * DAY  # one day more than the longest useful cap
COMPACT_AFTER_SECONDS = 600.0
EARLY_SECONDS = 3600.0  # feedback waits for its answer for so long
MAX_EARLY = 10_000

REJUDGED_MARK = '{"rejudged":true'
"""Begin of the scores of a verdict of a reading again. No quantity has this name: see `statistics.scores.RESERVED`."""
