"""How long redaction takes: hostile texts of a megabyte, and short texts of records.

    python bench/redaction.py [--bytes N]

The floor, measured in the same run, is one pass of a regular expression that looks at every word. A hostile text
repeats what a rule begins with, so that rules are tried as often as possible. Every text has to take less than a
second.
"""

import argparse
import re
import time
from collections.abc import Callable

from ragwatch.redaction.redactor import Redactor

UNITS = (
    *("0123 ", "4111 ", "+1 ", "415-555-", "1234567890", "DE89 ", "1.", "0", "A1", "1/", "v1.0-"),
    *("://a:", "a@", "a:b@", "::", "f:", "a.", "@tcp(", "curl -u a:", "mysql -p"),
    *("bearer aaaa=", "key=", "token: ", "password=", "x-api-key: ", "Cookie: a=b; ", "AccountKey=", 'key="', "=\n"),
    *(
        "eyJ",
        "AKIA",
        "sk-",
        "ghp_",
        "xoxb-",
        "GOOG",
        "-----BEGIN ",
        "secret",
        "'",
        '"',
        "\u00e9",
        "\u6f22\u5b57",
        "a" * 50 + " ",
    ),
)
RECORD = (
    "Returns are accepted within thirty days of purchase (order 4711-22); write to support@example.org or call "
    "+1 415 555 2671. The service listens on port 8080 and version 2.3.1 was released on 2026-11-02. "
)
_WORD = re.compile(r"\S+")


def seconds(run: Callable[[], object], times: int = 1) -> float:
    """CPU time of one run, the least of a few."""
    best = float("inf")
    for _ in range(3):
        start = time.process_time()
        for _ in range(times):
            run()
        best = min(best, (time.process_time() - start) / times)
    return best


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--bytes", type=int, default=1_000_000, help="length of a hostile text")
    size = parser.parse_args().bytes
    redactor = Redactor()
    rows = []
    for unit in UNITS:
        text = (unit * (size // len(unit) + 1))[:size]
        rows.append((seconds(lambda: redactor.redact(text)), seconds(lambda: _WORD.findall(text)), unit))  # noqa: B023 - run at once
    rows.sort(reverse=True)
    for taken, floor, unit in rows[:8]:
        print(f"{unit[:20]!r:24} {taken:.2f} s for {size} characters, {taken / floor:.0f} times a pass over its words")
    print(f"slowest of {len(rows)}: {rows[0][0]:.2f} s ({'under' if rows[0][0] <= 1 else 'OVER'} the bar of 1 s)")
    record = RECORD * 3
    taken, floor = seconds(lambda: redactor.redact(record), 50), seconds(lambda: _WORD.findall(record), 50)
    print(f"a text of {len(record)} characters: {taken * 1e6:.0f} us, {taken / floor:.0f} times a pass over its words")


if __name__ == "__main__":
    main()
