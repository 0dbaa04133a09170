"""The door: sets the process up, runs the command line, and ends with its exit code."""

from __future__ import annotations

import sys

from ragwatch import interrupts


def main() -> None:
    """Run the command line. What its exit codes mean stands in `ragwatch --help`."""
    interrupts.leave_at_once()
    # Imported after that, so that an interrupt meanwhile ends the process without a word.
    from ragwatch.commands import ending, streams  # noqa: PLC0415 - see above

    streams.prepare()
    code = ending.run()
    interrupts.ignore()
    sys.exit(code)


if __name__ == "__main__":
    main()
