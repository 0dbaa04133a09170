"""The bench against other tools: five parts, each with a table and a chart in docs/bench_peers.md.

    make bench-peers ARGS="--parts judges,drift"

A part that has been measured keeps its figures in dist/bench-peers; `--write` alone writes the page from them. The
machine may be busy: costs are CPU time, and ratios are what counts.
"""

import argparse
import importlib
import json
import sys
from pathlib import Path

HOME = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(HOME / "bench"), str(HOME / "tests")]
from peers.page import draw, placed  # noqa: E402 - it is beside this file

PARTS = ("judges", "embedded", "tail", "drift", "scrape")
RESULTS = HOME / "dist" / "bench-peers"
PAGE = HOME / "docs" / "bench_peers.md"
DATA = HOME.parent / "shared/data/judge/train/expertqa/all.jsonl"


def options() -> argparse.ArgumentParser:
    """The options of all parts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default=",".join(PARTS), help="which of them, separated by commas")
    parser.add_argument("--write", action="store_true", help="measure nothing; write the page from what was measured")
    parser.add_argument("--rounds", type=int, default=2, help="interleaved rounds of judges and of the speed of tail")
    parser.add_argument("--data", type=Path, default=DATA, help="judges: file of samples with five contexts or more")
    parser.add_argument("--samples", type=int, default=60, help="judges: samples")
    parser.add_argument("--in-flight", type=int, default=16, help="judges: the limit that each tool is given")
    parser.add_argument("--latency", type=float, default=1.0, help="judges: seconds that a call takes")
    parser.add_argument("--answers", type=int, default=60, help="embedded: answers for our judges")
    parser.add_argument("--nli-answers", type=int, default=4, help="embedded: answers for the cross-encoders")
    parser.add_argument("--lines", type=int, default=20_000, help="tail: lines whose speed is measured")
    parser.add_argument("--killed-lines", type=int, default=4000, help="tail: lines written while readers are killed")
    parser.add_argument(
        "--drift-runs", type=int, default=160, help="drift: runs for each detector; KSWIN gets a quarter"
    )
    parser.add_argument("--scrapes", type=int, default=21, help="scrape: scrapes of each kind")
    return parser


def main() -> None:
    """Measure the parts, then write tables and charts."""
    chosen = options().parse_args()
    RESULTS.mkdir(parents=True, exist_ok=True)
    for name in chosen.parts.split(","):
        if name not in PARTS:
            raise SystemExit(f"--parts: {name!r} is no part; use some of: {', '.join(PARTS)}")
        module = importlib.import_module(f"peers.{name}")
        file = RESULTS / f"{name}.json"
        if not chosen.write:
            print(f"== {name}", flush=True)
            file.write_text(json.dumps(module.measure(chosen), indent=1))
        if not file.exists():
            print(f"{name} has not been measured: its table stays as it is")
            continue
        part = module.part(json.loads(file.read_text()))
        PAGE.write_text(placed(PAGE.read_text(encoding="utf-8"), name, part.table), encoding="utf-8")
        (PAGE.parent / f"bench_peers_{name}.svg").write_text(draw(part.chart), encoding="utf-8")
        print(part.table)


if __name__ == "__main__":
    main()
