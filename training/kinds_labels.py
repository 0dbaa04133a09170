"""Draws sentences of real answers to be labelled with their kind, and reads the labels.

`python training/kinds_labels.py show 0 200` prints those of a range of the sample that have no label; `… label 0 200
3=courtesy 17=meta` writes their labels (all others are claims); `… table` counts the labels, and `… figures` prints
how well the shipped judge tells sentences that are no claims. `training/kinds/labels.csv` has no texts: a label is of
`length` characters from `offset` of an answer in `../shared/data`, and the first digits of their SHA-256 show that the
answer is the one that was read. Nothing is fitted on `blind.csv`, nor on the sets `KEPT` of `labels.csv`.
"""

import csv
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from ragwatch.judges.claims.claims import claims_of
from ragwatch.judges.claims.kinds import asks, is_small_talk, read_words
from ragwatch.judges.claims.sentences import spans
from ragwatch.judges.text_classifier import shipped_classifier
from ragwatch.statistics.text.phrases import abstains, is_meta

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
LABELS = Path(__file__).parent / "kinds" / "labels.csv"
BLIND = LABELS.with_name("blind.csv")
KEPT = ("judge/dev/attributionbench", "agreement/ragchecker", "judge/eval_only")
KINDS = ("claim", "abstention", "courtesy", "offer", "question", "lead-in", "meta", "advice", "disclaimer", "heading")
SETS = {
    "judge/train/attributionbench/dev": (230, 330, 120),
    "judge/dev/attributionbench/test_id500": (120, 120, 120),
    "judge/train/expertqa/all": (200, 200, 100),
    "relevance/mtrag_answerability": (260, 420, 350),
    "agreement/ragchecker_pairs": (150, 160, 150),
    "judge/train/begin/cmu_dev": (60, 70, 0),
    "judge/train/begin/tc_dev": (60, 90, 0),
    "judge/train/begin/wow_dev": (50, 40, 0),
    "judge/train/begin/wow_test": (90, 120, 50),
    "judge/train/q2_wow/cross_annotation": (60, 70, 0),
    "judge/train/halueval_qa/sample": (60, 20, 0),
    "judge/train/factcheck_gpt/stance": (50, 10, 0),
    "judge/train/wice/claim_dev": (20, 0, 0),
    "judge/train/fever_symmetric/dev": (20, 0, 0),
    "judge/train/summedits/news": (20, 0, 0),
    "judge/train/summedits/podcast": (20, 0, 0),
    "judge/train/summedits/sales_email": (20, 0, 0),
    "judge/train/summedits/samsum": (20, 0, 0),
    "judge/train/summedits/scitldr": (20, 0, 0),
    "relevance/clapnq/dev": (60, 10, 0),
    "relevance/hotpotqa/sample100": (10, 0, 0),
    "relevance/fanoutqa/dev": (10, 0, 0),
    "judge/eval_only/factscore/chatgpt": (30, 0, 0),
}
"""Sentences drawn from each set: by chance, least like claims, with words of advice. Fit nothing on `eval_only`."""

_PERSON = re.compile(r"\b(?:I|me|my|we|us|our|you|your)\b", re.IGNORECASE)
_ADVICE = re.compile(
    r"\b(?:consult\w*|advis\w+|recommend\w*|contact|reach(?:ing)? out|professionals?|keep in mind|note|remember"
    r"|may vary|can vary|depends?|expert|passages?|contexts?|provided|documents?|sources|results|question|articles?|see"
    r"|visit|check|hope|help|please|sorry|unfortunately|information|details|according)\b",
    re.IGNORECASE,
)
_SHORT = 8  # words


class Sentence(NamedTuple):
    """A sentence of an answer: `key` is the identifier of its row, with the field behind `#` if it is not `answer`."""

    name: str
    key: str
    offset: int
    text: str
    edge: bool = False

    @property
    def digest(self) -> str:
        """The first twelve digits of the hash of its text."""
        return sha256(self.text.encode()).hexdigest()[:12]


@cache
def answers(name: str) -> dict[str, str]:
    """The answers of a set, by key."""
    found: dict[str, str] = {}
    with (DATA / f"{name}.jsonl").open(encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            label, meta = row["label"], row["meta"]
            found |= {
                row["id"]: row["answer"],
                f"{row['id']}#response": meta.get("response"),
                f"{row['id']}#answer_2": label.get("answer_2"),
            }
            for number, turn in enumerate(meta.get("history") or ()):
                found[f"{row['id']}#history.{number}"] = turn["text"] if turn["speaker"] == "agent" else ""
    return {key: text for key, text in found.items() if text}


def sentences(name: str) -> list[Sentence]:
    """The sentences of a set, each text once, in an order by chance that stays the same."""
    found: dict[str, Sentence] = {}
    for key, text in answers(name).items():
        parts = [span for span in spans(text) if not span.block]
        for span in parts:
            sentence = Sentence(name, key, span.start, text[span.start : span.end], span in (parts[0], parts[-1]))
            found.setdefault(sentence.text.casefold(), sentence)
    return sorted(found.values(), key=lambda sentence: sentence.digest)


def sample() -> list[Sentence]:
    """The sentences to label, set by set; each text once."""
    chosen: dict[str, Sentence] = {}
    for name, (by_chance, unlike, advice) in SETS.items():
        rest = [sentence for sentence in sentences(name) if sentence.text.casefold() not in chosen]
        drawn = rest[:by_chance] + sorted(rest[by_chance:], key=unlike_claims, reverse=True)[:unlike]
        drawn += [sentence for sentence in rest if sentence not in drawn and _ADVICE.search(sentence.text)][:advice]
        chosen |= {sentence.text.casefold(): sentence for sentence in drawn}
    return list(chosen.values())


def unlike_claims(sentence: Sentence) -> float:
    """How little a sentence looks like a claim."""
    text = sentence.text
    classifier = shipped_classifier("kinds")
    logit = classifier.logit(read_words(text))
    signs = (
        len(text.split()) <= _SHORT,
        sentence.edge,
        logit > classifier.thresholds["least"] - 1,
        re.search(r"[!?:]\W{0,3}$", text),
        _PERSON.search(text),
        _ADVICE.search(text),
    )
    return sum(map(bool, signs)) + logit


def labelled(path: Path | None = None) -> Iterator[tuple[Sentence, str]]:
    """Every sentence of a file (`LABELS`) and its kind. Another text than the one that was read is an error."""
    path = path or LABELS
    if not path.is_file():
        return
    with path.open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            start = int(row["offset"])
            text = answers(row["set"])[row["row"]][start : start + int(row["length"])]
            sentence = Sentence(row["set"], row["row"], start, text)
            if sentence.digest != row["sha256"]:
                raise SystemExit(f"{row['set']} {row['row']}: another text than the one that was labelled")
            yield sentence, row["kind"]


def write(chosen: list[Sentence], kinds: list[str]) -> None:
    """Write labels of sentences; a sentence that has one already gets the new one."""
    labels = {sentence[:4]: kind for sentence, kind in labelled()}
    labels |= {sentence[:4]: kind for sentence, kind in zip(chosen, kinds, strict=True)}
    with LABELS.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("set", "row", "offset", "length", "sha256", "kind"))
        for fields, kind in sorted(labels.items()):
            sentence = Sentence(*fields)
            writer.writerow((*fields[:3], len(sentence.text), sentence.digest, kind))


def table() -> None:
    """Print the number of labels of each kind, by set."""
    counts = Counter((sentence.name, kind) for sentence, kind in labelled())
    print("| set |", " | ".join(KINDS), "| all |")
    for name in (*SETS, "all"):
        row = [sum(counts[one, kind] for one in (SETS if name == "all" else (name,))) for kind in KINDS]
        print(f"| {name} |", " | ".join(map(str, row)), f"| {sum(row)} |")


def figures() -> None:
    """Print figures of the labels that are fitted on, of those that are kept, and of the blind ones."""
    for name, rows in (
        ("fitted", [row for row in labelled() if not row[0].name.startswith(KEPT)]),
        ("kept", [row for row in labelled() if row[0].name.startswith(KEPT)]),
        ("blind", list(labelled(BLIND))),
    ):
        print(name)
        figures_of(rows)


def figures_of(rows: list[tuple[Sentence, str]]) -> None:
    """Print how well the judge tells sentences that are no claims, in their answer and alone, and its mistakes."""
    alone = [is_told(sentence.text) for sentence, _ in rows]
    for title, told in (("in its answer", [has_no_claim(sentence) for sentence, _ in rows]), ("alone", alone)):
        hits = sum(no_claim for (_, kind), no_claim in zip(rows, told, strict=True) if kind != "claim")
        precision, recall = hits / max(1, sum(told)), hits / max(1, sum(kind != "claim" for _, kind in rows))
        print(f"{title}: precision {precision:.3f} recall {recall:.3f}", end=" ")
        print(f"F1 {2 * precision * recall / (precision + recall):.3f}")
        for kind in KINDS:
            of_kind = [no_claim for (_, label), no_claim in zip(rows, told, strict=True) if label == kind]
            print(f"    {kind}: {sum(of_kind)} of {len(of_kind)} are read as no claims")
    for (sentence, kind), no_claim in zip(rows, alone, strict=True):
        if no_claim is (kind == "claim"):
            print(f"{kind} | {sentence.name} | {sentence.text}")


def is_told(text: str) -> bool:
    """Whether patterns or the classifier read a sentence as no claim."""
    return asks(text) or is_small_talk(text) or abstains(text) or is_meta(text)


def has_no_claim(sentence: Sentence) -> bool:
    """Whether no claim of its answer has a part of the sentence."""
    end = sentence.offset + len(sentence.text)
    return not any(start < end and sentence.offset < stop for start, stop in claim_spans(sentence.name, sentence.key))


@cache
def claim_spans(name: str, key: str) -> list[tuple[int, int]]:
    """Where the claims of an answer are."""
    return [(claim.start, claim.end) for claim in claims_of(answers(name)[key]).claims]


def main() -> None:
    """Print sentences, write their labels, or print figures."""
    what, *rest = sys.argv[1:]
    if what in ("table", "figures"):
        {"table": table, "figures": figures}[what]()
        return
    first, last = map(int, rest[:2])
    done = {sentence.text.casefold() for path in (LABELS, BLIND) for sentence, _ in labelled(path)}
    chosen = [one for one in enumerate(sample()) if first <= one[0] < last and one[1].text.casefold() not in done]
    if what == "show":
        for number, sentence in chosen:
            print(number, " ".join(sentence.text.split()))
        return
    other = {int(number): kind for number, kind in (pair.split("=") for pair in rest[2:])}
    if not (set(other) <= {number for number, _ in chosen} and set(other.values()) <= {*KINDS}):
        raise SystemExit("a number that was not shown, or no such kind")
    write([sentence for _, sentence in chosen], [other.get(number, "claim") for number, _ in chosen])


if __name__ == "__main__":
    main()
