"""Shipping: the final reader and the folds' outputs -> the artefact, and the figures of training/LOCAL.md."""

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from fit import auroc, interval
from local_export import export, pruned
from local_fuse import Heard, against_curve, calibration_error, contradicted_from, probability, support_curve
from local_model import Reader
from local_pairs import CONTRADICTED, SUPPORTED
from local_train import PIECES

SHIPPED = Path(__file__).resolve().parent.parent / "reader" / "ragwatch_reader" / "model"
SHARES = {"attributionbench": 2.0, "expertqa": 1.0, "wice": 1.0, "fever_symmetric": 1.5, "summedits": 1.0}
"""Say of each family in the fusion: real answers first."""
AGAINST_SHARES = {"kept/fever_symmetric": 1.0, "kept/absent": 0.5}
"""Families in the fusion of contradictions: facts kept from the final reader, and claims that nothing is said of."""
SUPPORTED_FROM = 0.38
FALSE_CONTRADICTIONS = 0.04
"""Of supported claims at most this share may be called contradicted where the threshold is chosen; the bar is .05."""
FITTED_ON = (
    *(f"judge/train/{name}" for name in ("attributionbench", "begin", "expertqa", "factcheck_gpt", "fever_symmetric")),
    *(f"judge/train/{name}" for name in ("halueval_qa", "q2_wow", "summedits", "wice")),
    "relevance/clapnq",
    "relevance/mtrag_answerability",
    "clapnq answers",
)
"""Beginnings of the names of sets that the reader was taught, by which `make bench-judge` marks its figures."""


def tables(found: Sequence[Heard], final: Sequence[Heard]) -> dict[str, Any]:
    """Curves and thresholds.

    Args:
        found: What folds say of families that they were not taught: support is fitted on it.
        final: What the final reader says of what was kept from it: contradictions are.
    """
    support, against = support_curve(found, SHARES), against_curve(final, AGAINST_SHARES)
    facts = [one for one in final if one.pair.family == "kept/fever_symmetric"]
    return {
        "version": 2,
        "support": support,
        "contradiction": against,
        "thresholds": {
            "support": SUPPORTED_FROM,
            "contradicted": round(contradicted_from(facts, support, against, FALSE_CONTRADICTIONS), 4),
        },
        "max_pieces": PIECES,
        "trained": {"base": "all-MiniLM-L6-v2", "fitted_on": list(FITTED_ON)},
    }


def ship(reader: Reader, tokenizer: Path, content: dict[str, Any], folder: Path) -> None:
    """Write `reader.onnx`, `tokenizer.json` and `local.json`, whose `content` lacks the digests of the two others."""
    folder.mkdir(parents=True, exist_ok=True)
    small, pieces = pruned(reader, json.loads(tokenizer.read_text(encoding="utf-8")))
    export(small, folder / "reader.onnx")
    (folder / "tokenizer.json").write_text(json.dumps(pieces, ensure_ascii=False) + "\n", encoding="utf-8")
    names = ("reader.onnx", "tokenizer.json")
    digests = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in names}
    (folder / "local.json").write_text(json.dumps({**content, "files": digests}, indent=1) + "\n", encoding="utf-8")


def _families(found: Sequence[Heard]) -> dict[str, list[Heard]]:
    families: dict[str, list[Heard]] = defaultdict(list)
    for one in found:
        families[one.pair.family].append(one)
    return dict(sorted(families.items()))


def _rows(part: Sequence[Heard], support: Callable[[Heard], float]) -> tuple[list[bool], list[float]]:
    """(unsupported, 1 - least support) of each row of a family."""
    rows: dict[str, list[Heard]] = defaultdict(list)
    for one in part:
        rows[one.pair.row].append(one)
    bad = [any(one.pair.verdict != SUPPORTED for one in row) for row in rows.values()]
    return bad, [-min(support(one) for one in row) for row in rows.values()]


def print_fold(found: Sequence[Heard]) -> None:
    """AUROC of single numbers on the families that a fold holds out."""
    for family, part in _families(found).items():
        values = {
            "lexical": lambda one: one.x[0],
            "s": lambda one: one.x[1],
            "-t_max": lambda one: -one.x[3],
            "-t_mean": lambda one: -one.x[4],
        }
        line = "  ".join(f"{name} {auroc(*_rows(part, value)):.3f}" for name, value in values.items())
        print(f"{family:22s} claims {len(part):5d}  {line}")


def print_figures(found: Sequence[Heard], final: Sequence[Heard]) -> None:
    """Held-out figures of the fused judge beside the lexical one, calibration, and contradictions."""
    content = tables(found, final)
    support, against, thresholds = content["support"], content["contradiction"], content["thresholds"]
    print(json.dumps({key: content[key] for key in ("support", "contradiction", "thresholds")}))
    for family, part in _families(found).items():
        bad, fused = _rows(part, lambda one: probability(support, one.x))
        low, high = interval(bad, fused, rounds=500)
        words = auroc(*_rows(part, lambda one: one.x[0]))
        said = [probability(support, one.x) for one in part]
        error = calibration_error(said, [one.pair.verdict == SUPPORTED for one in part])
        tied = float(np.corrcoef(fused, bad)[0, 1])
        print(f"{family:22s} rows {len(bad):5d} words {words:.3f} fused {auroc(bad, fused):.3f} [{low:.3f}, {high:.3f}] r {tied:.2f} ECE {error:.3f}")  # noqa: E501  # fmt: skip
    for name, dev in (
        ("folds", [one for one in found if one.pair.family.startswith("dev/")]),
        ("final", [one for one in final if one.pair.family.startswith("dev/")]),
    ):
        said = [probability(support, one.x) for one in dev]
        error = calibration_error(said, [one.pair.verdict == SUPPORTED for one in dev])
        print(f"ECE of the union of dev sets, {name}: {error:.3f}")
    for name, heard in (("folds", found), ("final", final)):
        for family, part in _families(heard).items():
            if family.endswith("fever_symmetric"):
                print(name, family, contradictions(part, support, against, thresholds))


def contradictions(
    part: Sequence[Heard], support: Mapping[str, Any], against: Mapping[str, Any], thresholds: Mapping[str, float]
) -> str:
    """F1 of the verdict "contradicted", and the share of supported claims that get it."""
    called = [
        probability(support, one.x) < thresholds["support"]
        and probability(against, one.x) >= thresholds["contradicted"]
        for one in part
    ]
    truth = [one.pair.verdict == CONTRADICTED for one in part]
    hits = sum(one and other for one, other in zip(called, truth, strict=True))
    false = sum(one and pair.pair.verdict == SUPPORTED for one, pair in zip(called, part, strict=True))
    precision, recall = hits / max(1, sum(called)), hits / max(1, sum(truth))
    score = 2 * precision * recall / max(1e-9, precision + recall)
    share = false / max(1, len(truth) - sum(truth))
    return f"F1 {score:.3f} (P {precision:.2f}, R {recall:.2f}), of the supported {share:.3f}"
