"""A month with ragwatch: real answers on five routes with twelve breakages, in 25 minutes, and the page about it.

    make month ARGS="--seed 1"

A real daemon, Prometheus and Alertmanager with the shipped rules run beside it; an hour is two seconds, and every
duration of the rules is divided by the same factor. What was recorded is kept in dist/month/record.json, also when the
run is ended early: `--write` alone writes docs/month.md and its charts from it.
"""

import argparse
import sys
from pathlib import Path

HOME = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(HOME / "bench"), str(HOME / "tests")]
from month import page, play  # noqa: E402 - it is beside this file
from month.record import read  # noqa: E402
from month.story import DAYS, HOUR, ROUTES  # noqa: E402

RECORD = HOME / "dist" / "month" / "record.json"


def options() -> argparse.ArgumentParser:
    """The options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1, help="of the answers")
    parser.add_argument("--days", type=float, default=DAYS, help="only the first days of the month")
    parser.add_argument("--routes", type=int, default=len(ROUTES), help="only the first routes")
    parser.add_argument("--hour", type=float, default=HOUR, help="seconds of an hour; more of them on a busy machine")
    parser.add_argument("--write", action="store_true", help="play nothing; write the page from what was recorded")
    parser.add_argument("--record", type=Path, default=RECORD, help="where the record is kept")
    parser.add_argument("--out", type=Path, default=HOME / "docs", help="where month.md and its charts are written")
    return parser


def main() -> None:
    """Play the month, then write the page."""
    chosen = options().parse_args()
    if not chosen.write:
        play.month(chosen.record, ROUTES[: chosen.routes], chosen.days, chosen.hour, chosen.seed)
    record = read(chosen.record)
    chosen.out.mkdir(parents=True, exist_ok=True)
    for name, text in page.files(record).items():
        (chosen.out / name).write_text(text, encoding="utf-8")
        print(f"{chosen.out / name}")


if __name__ == "__main__":
    main()
