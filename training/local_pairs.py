"""Pairs: what the local judge's reader is trained on, read exactly as it reads at run time.

A pair is one claim beside one window of evidence, with what is known of it: a verdict, or only that it is not
supported, and where known the characters that are not.
"""

import math
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Any

from sets import SEED, load

from ragwatch.judges.claims.claims import claims_of
from ragwatch.judges.claims.words import terms
from ragwatch.judges.lexical.features import claim_words, features, match
from ragwatch.judges.lexical.passages import PreparedPassage, passage
from ragwatch.judges.lexical.tables import shipped
from ragwatch.judges.local.cross_encoder import window

SUPPORTED, CONTRADICTED, ABSENT, UNSUPPORTED = range(4)
"""Verdicts; UNSUPPORTED = contradicted or absent, the set does not say which."""

SUMMEDITS = ("ectsum", "news", "podcast", "qmsumm", "sales_call", "sales_email", "samsum", "scitldr")


@dataclass(frozen=True, slots=True)
class Pair:
    """One claim and its evidence."""

    family: str  # set it comes from; leave-one-set-out is by family
    row: str  # claims of one row share it: the row's support is its least claim's
    claim: str  # its words, leads and citation marks blanked
    evidence: str  # the window
    verdict: int  # one of the four above
    lexical: float  # logit of support that the lexical judge gives over the same contexts
    spans: tuple[tuple[int, int], ...] | None = None  # unsupported characters of the claim; None when unknown
    weight: float = 1.0  # in the loss


@lru_cache(maxsize=3_000)
def parsed(text: str) -> PreparedPassage:
    """A passage, read once."""
    return passage(text)


@lru_cache(maxsize=4096)
def _terms(text: str) -> frozenset[str]:
    return frozenset(terms(text))


def lexical_logit(claim: str, contexts: Sequence[str], question: str = "") -> float:
    """What the lexical judge gives a claim over these contexts together, as a logit of support."""
    tables = shipped()
    words = claim_words(claim, tables.rarity)
    found = [match(words, parsed(text)) for text in contexts]
    values = features(words, found, _terms(question))
    return tables.support.bias + sum(w * x for w, x in zip(tables.support.weights, values, strict=True))


def read(claim: str, contexts: Sequence[str], budget: int, question: str = "") -> tuple[str, float]:
    """(evidence, lexical logit) of a claim."""
    words = claim_words(claim, shipped().rarity)
    evidence = window(words, [parsed(text) for text in contexts], contexts, budget=budget)
    return evidence, lexical_logit(claim, contexts, question)


def said(answer: str, question: str = "") -> list[str]:
    """Claims of an answer as the judge reads them; the whole answer when it finds none."""
    return [claim.words for claim in claims_of(answer, question or None).claims] or [answer]


def rows_of(name: str, family: str, budget: int, weight: float = 1.0) -> Iterator[Pair]:
    """Pairs of a set whose rows have one verdict each.

    All claims of a supported row are supported. An unsupported row that makes one claim gives it; one that makes more
    gives none of them a verdict of its own, so it is left to `summedits`, which knows where the edit is.
    """
    for row in load(name):
        label, question = row["label"], row["question"] or ""
        if label["faithful"] is None:
            continue
        claims = said(row["answer"], question)
        if not label["faithful"] and len(claims) > 1 and label.get("level") == "claim":
            claims = [re.sub(r"</s>", " ", row["answer"])]
        verdict = SUPPORTED if label["faithful"] else _why(label)
        if verdict != SUPPORTED and len(claims) > 1:
            continue
        for claim in claims:
            evidence, lexical = read(claim, row["contexts"], budget, question)
            spans = () if verdict == SUPPORTED else _spans(row, claim)
            yield Pair(family, row["id"], claim, evidence, verdict, lexical, spans, weight)


def _why(label: dict[str, Any]) -> int:
    raw = str(label.get("raw") or "").lower()
    return {"refutes": CONTRADICTED, "refute": CONTRADICTED, "irrelevant": ABSENT}.get(raw, UNSUPPORTED)


def _spans(row: dict[str, Any], claim: str) -> tuple[tuple[int, int], ...] | None:
    marked = row["label"].get("unsupported_spans")
    if not marked or claim.strip() not in row["answer"]:
        return None
    shift = row["answer"].index(claim.strip()) - claim.index(claim.strip())
    return tuple((max(0, one["start"] - shift), one["end"] - shift) for one in marked if one["end"] > shift)


def summedits(budget: int) -> Iterator[Pair]:
    """Edited summaries: the sentences of a bad one that its seed has too are supported, the one that differs is not."""
    for domain in SUMMEDITS:
        for row in load(f"judge/train/summedits/{domain}"):
            seed = set(said(row["meta"]["original_summary"]))
            claims = said(row["answer"])
            changed = [claim for claim in claims if claim not in seed]
            for claim in claims:
                bad = not row["label"]["faithful"] and claim in changed
                if bad and len(changed) > 1:
                    continue
                evidence, lexical = read(claim, row["contexts"], budget)
                spans = _differences(claim, row["meta"]["original_summary"]) if bad else ()
                weight = 1.0 if claim in changed else 0.25  # the seed's sentences come back dozens of times
                verdict = UNSUPPORTED if bad else SUPPORTED
                yield Pair("summedits", row["id"], claim, evidence, verdict, lexical, spans, weight)


def _differences(claim: str, original: str) -> tuple[tuple[int, int], ...] | None:
    """The one run of words in which a claim differs from its original; None where there are several."""
    words = list(re.finditer(r"\S+", claim))
    blocks = SequenceMatcher(None, [word.group() for word in words], original.split(), autojunk=False).get_opcodes()
    runs = [(low, high) for kind, low, high, _, _ in blocks if kind in ("replace", "insert", "delete") and high > low]
    if len(runs) != 1:
        return None
    low, high = runs[0]
    return ((words[low].start(), words[high - 1].end()),)


def expertqa(budget: int) -> Iterator[Pair]:
    """Claims of whole answers that experts judged against what they cite; `Partial` counts as unsupported."""
    for row in load("judge/train/expertqa/all"):
        question = row["question"] or ""
        for number, claim in enumerate(row["label"]["claims"]):
            cited = [row["contexts"][rank] for rank in claim["cited_contexts"]]
            if claim["supported"] is None or not claim["has_passage"] or not cited:
                continue
            words = said(claim["text"], question)
            text = words[0] if len(words) == 1 else claim["text"]
            evidence, lexical = read(text, cited, budget, question)
            verdict = SUPPORTED if claim["supported"] else UNSUPPORTED
            spans = () if claim["supported"] else None
            yield Pair("expertqa", f"{row['id']}#{number}", text, evidence, verdict, lexical, spans)


def attributionbench(budget: int) -> Iterator[Pair]:
    """AttributionBench; its ExpertQA part is a family of its own, to be held out with ExpertQA."""
    sources = {row["id"]: row["meta"]["src"] for row in load("judge/train/attributionbench/dev")}
    for pair in rows_of("judge/train/attributionbench/dev", "attributionbench", budget):
        if sources[pair.row] == "ExpertQA":
            yield Pair("expertqa", f"ab:{pair.row}", *_rest(pair))
        else:
            yield pair


def _rest(pair: Pair) -> tuple[str, str, int, float, tuple[tuple[int, int], ...] | None, float]:
    return pair.claim, pair.evidence, pair.verdict, pair.lexical, pair.spans, pair.weight


def human_answers() -> Iterator[tuple[str, str, list[str], str]]:
    """(family, question, contexts, claim): what people wrote from passages, supported claim by claim."""
    for row in load("relevance/clapnq/dev"):
        if row["label"]["answerable"]:
            for claim in said(row["answer"], row["question"]):
                yield "clapnq", row["question"], [" ".join(row["contexts"])], claim
    for row in load("relevance/mtrag_answerability"):
        if row["label"]["answerability"] == "ANSWERABLE" and row["answer"] and row["contexts"]:
            for claim in said(row["answer"], row["question"]):
                if lexical_logit(claim, row["contexts"], row["question"] or "") > 0.0:
                    yield "mtrag", row["question"] or "", row["contexts"], claim


def clapnq(budget: int) -> Iterator[Pair]:
    """People's answers over their own passages, and over the passages of another question."""
    found = list(human_answers())
    foreign = random.Random(SEED).sample(found, len(found))
    for number, ((family, question, contexts, claim), (_, _, others, _)) in enumerate(zip(found, foreign, strict=True)):
        evidence, lexical = read(claim, contexts, budget, question)
        yield Pair(family, f"{family}:{number}", claim, evidence, SUPPORTED, lexical, ())
        if others != contexts and number % 4 == 0:
            evidence, lexical = read(claim, others, budget, question)
            yield Pair(family, f"{family}:{number}:foreign", claim, evidence, ABSENT, lexical, None, 0.5)


def some(pairs: Iterator[Pair], share: float, seed: int = SEED) -> Iterator[Pair]:
    """A seeded share of some pairs."""
    rng = random.Random(seed)
    return (pair for pair in pairs if rng.random() < share)


def judged(budget: int) -> list[Pair]:
    """The five families that the judge is measured on, each to be held out in turn."""
    return [
        *summedits(budget),
        *rows_of("judge/train/fever_symmetric/dev", "fever_symmetric", budget),
        *expertqa(budget),
        *attributionbench(budget),
        *rows_of("judge/train/wice/claim_dev", "wice", budget),
        *rows_of("judge/train/wice/tokens_dev", "wice", budget),
        *rows_of("judge/train/wice/tokens_train", "wice", budget),
    ]


def dev(budget: int) -> list[Pair]:
    """Test parts, never taught: each is read by the fold that holds its family out."""
    return [
        *rows_of("judge/dev/attributionbench/test_id500", "dev/attributionbench", budget),
        *rows_of("judge/dev/wice/claim_test", "dev/wice", budget),
        *rows_of("judge/dev/fever_symmetric/test", "dev/fever_symmetric", budget),
    ]


def others(budget: int) -> list[Pair]:
    """Labelled sets that no bar is set on: they may teach every fold."""
    return [
        *rows_of("judge/train/q2_wow/cross_annotation", "q2", budget),
        *some(rows_of("judge/train/begin/wow_test", "begin", budget, 0.5), 0.35),
        *rows_of("judge/train/begin/cmu_dev", "begin", budget, 0.5),
        *rows_of("judge/train/begin/tc_dev", "begin", budget, 0.5),
        *rows_of("judge/train/factcheck_gpt/stance", "factcheck_gpt", budget, 0.6),
        *some(rows_of("judge/train/halueval_qa/sample", "halueval", budget, 0.3), 0.3),
        *clapnq(budget),
    ]


def probability(logit: float) -> float:
    """Logistic function, safe at both ends."""
    return 1.0 / (1.0 + math.exp(-max(-60.0, min(60.0, logit))))
