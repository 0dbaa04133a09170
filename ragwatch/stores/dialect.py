"""The words of statements that stand for different SQL in the two engines.

Each statement is written once, with named parameters (`:key`) and with words in capitals where the dialects differ.
"""

import re
from functools import lru_cache
from typing import NamedTuple

REJUDGED_MARK = '{"rejudged":true'
"""Begin of the scores of a verdict of a reading again. No quantity has this name: see `statistics.scores.RESERVED`."""


class Word(NamedTuple):
    """A word, as a regular expression, and its SQL in each engine, to which later rows apply.

    In PostgreSQL, lists are given in binary (%b): as text, psycopg takes 20 us for each body of a sample.
    """

    pattern: str
    sqlite: str
    postgres: str


_RETENTION = "FROM states WHERE name = 'retention'"  # this state is stored as plain JSON, so that SQL can read it
WORDS = (
    # The condition that a reply is about one of these answers.
    Word(r"\bREPLIED\((:\w+)\)", r"seq IN (SELECT v.seq FROM verdicts v WHERE v.key = LIST(\1))", r"key = LIST(\1)"),
    # Any element of a list of texts, integers or bytes.
    Word(r"= LIST\(:(\w+)\)", r"IN (SELECT value FROM json_each(:\1))", r"= ANY(%(\1)b::text[])"),
    Word(r"= INTS\(:(\w+)\)", r"IN (SELECT value FROM json_each(:\1))", r"= ANY(%(\1)b::bigint[])"),
    Word(r"= BLOBS\(:(\w+)\)", r"IN (SELECT unhex(value) FROM json_each(:\1))", r"= ANY(%(\1)b::bytea[])"),
    # The table with the keys of all samples.
    Word(r"\bSAMPLE_KEYS\b", "samples", "sample_keys"),
    # Body of a sample whose texts were deleted; the first byte of an encrypted text.
    Word(r"\bDROPPED\b", "x'00'", r"'\\x00'::bytea"),
    Word(r"\bSEALED\b", "x'02'", r"'\\x02'::bytea"),
    # The column that grows with each row of `parts` and `events`.
    Word(r"\bROW_ID\b", "rowid", "id"),
    # Minus infinity.
    Word(r"\bLOWEST\b", "-9e999", "'-Infinity'::float8"),
    # Up to when, and up to which sequence number, retention has deleted verdicts, or NULL.
    Word(
        r"\bPRUNED_UNTIL\b", f"(SELECT json_extract(body, '$.until') {_RETENTION})", "(SELECT pruned.until FROM pruned)"
    ),
    Word(r"\bPRUNED_SEQ\b", f"(SELECT json_extract(body, '$.seq') {_RETENTION})", "(SELECT pruned.seq FROM pruned)"),
    # The last sequence number of a verdict.
    Word(
        r"\bLAST_SEQ\b",
        "(SELECT seq FROM sqlite_sequence WHERE name = 'verdicts')",
        "COALESCE(pg_sequence_last_value(pg_get_serial_sequence('verdicts', 'seq')::regclass), 0)",
    ),
    # The condition that a verdict `v` is of a reading again (see `stores.rejudging`).
    Word(
        r"\bREJUDGED\(([\w.]*)\)",
        rf"COALESCE(\1scores GLOB '{REJUDGED_MARK}*', FALSE)",
        rf"COALESCE(\1scores @> '{REJUDGED_MARK}}}', FALSE)",
    ),
    # The score of the quantity `:quantity` in a verdict `v`, NULL without one; a damaged row must not fail a search.
    Word(
        r"\bSCORE\(([\w.]*)\)",
        r"CASE WHEN json_valid(\1scores) THEN json_extract(\1scores, '$.' || :quantity) END",
        r"(\1scores ->> :quantity)::float8",
    ),
    # The value of the segment `:segment` in a verdict `v`, NULL without one.
    Word(
        r"\bSEGMENT\(([\w.]*)\)",
        r"""CASE WHEN json_valid(\1scores) THEN json_extract(\1scores, '$.segments."' || :segment || '"') END""",
        r"\1scores -> 'segments' ->> :segment",
    ),
    # The integer part of a number.
    Word(r"\bTRUNC\(([^()]*)\)", r"CAST(\1 AS INTEGER)", r"trunc(\1)::bigint"),
    # Whether the words of an answer `a` are indexed, NULL if it is not indexed.
    Word(r"\bHAS_WORDS\b", "a.words", "CASE WHEN a.key IS NOT NULL THEN a.words IS NOT NULL END"),
    # The condition that a verdict is not in the partition of a day.
    Word(r"\bPART\b", "TRUE", "part <= 0"),
    # A clause that locks rows, where several processes write; assignments that end the lease of a draw.
    Word(r" LOCKING\(([^)]*)\)", "", r" \1"),
    Word(r" UNLEASED\b", "", ", holder = NULL, leased_until = '-Infinity'"),
    # The value of a counter, summed over the workers: in one order, because else rounding could make a counter fall.
    Word(r"\bTALLIED\b", "SUM(value)", "SUM(value ORDER BY slot)"),
    # The names of the columns of the table `:name`.
    Word(
        r"\bCOLUMNS\b",
        "SELECT name FROM pragma_table_info(:name)",
        "SELECT attname::text FROM pg_attribute WHERE attrelid = to_regclass(:name) AND attnum > 0 ORDER BY attnum",
    ),
)
_PARAMETER = re.compile(r'(?<![:"\w]):([a-z]\w*)')  # neither a cast (::) nor a value of JSON


@lru_cache(1024)  # a search has as many forms as there are combinations of filters
def in_sqlite(sql: str) -> str:
    """Return a statement in the dialect of SQLite."""
    for word in WORDS:
        sql = re.sub(word.pattern, word.sqlite, sql)
    return sql


@lru_cache(1024)
def in_postgres(sql: str) -> bytes:
    """Return a statement in the dialect of PostgreSQL, as psycopg takes it.

    >>> in_postgres("DELETE FROM work WHERE judge = :judge AND key = LIST(:keys)")
    b'DELETE FROM work WHERE judge = %(judge)s AND key = ANY(%(keys)b::text[])'
    """
    for word in WORDS:
        sql = re.sub(word.pattern, word.postgres, sql)
    return _PARAMETER.sub(r"%(\1)s", sql).encode()
