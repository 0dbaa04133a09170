"""Sayings: what words and the exported model say of each claim of labelled answers, as the judge weighs them."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from local_edits import KINDS, edits
from local_first import DENIES, is_planted
from local_human import OUTSIDE, is_kept, surrounded
from local_human import rows as human_rows
from local_pairs import human_answers
from sets import SEED, load

from ragwatch.judges.claims.claims import claims_of
from ragwatch.judges.claims.sentences import spans
from ragwatch.judges.claims.words import terms
from ragwatch.judges.lexical.facts import Sources, missing_weight
from ragwatch.judges.lexical.features import claim_words, coverage, missing_run
from ragwatch.judges.lexical.rows import ClaimRow, comparison
from ragwatch.judges.lexical.tables import logit, shipped
from ragwatch.judges.local.artefact import ModelSignals, numbers
from ragwatch.judges.local.artefact import load as load_artefact
from ragwatch.judges.local.cross_encoder import window
from ragwatch.judges.local.session import PairModel
from ragwatch.model.sample import Context, Sample

HUMAN = ("fm2", "scifact", "conjnli", "infotabs", "snli_counterfactual", "mnli", "negation_nli", *OUTSIDE)
MOST_HUMAN, MOST = 450, 300
CUT = 0.35
"""A sentence with this share of a claim's weight is taken out where an answer is to lose its source."""
SAMPLED = ("begin/wow_dev", "q2_wow/cross_annotation", "halueval_qa/sample", "factcheck_gpt/stance", "summedits/news")


class Row(NamedTuple):
    """A labelled answer: its family, whether something is unsupported, and whether it is contradicted, if known."""

    family: str
    question: str | None
    contexts: Sequence[str]
    answer: str
    bad: bool
    refuted: bool | None = None


class Saying(NamedTuple):
    """A row, the numbers of each of its claims (`local.artefact.NAMES`), and what lost facts take from each logit."""

    family: str
    bad: bool
    refuted: bool | None
    claims: tuple[tuple[float, ...], ...]
    costs: tuple[float, ...]


def sayings(weights: Path, some: Sequence[Row]) -> list[Saying]:
    """Read rows with the model of a folder; a row without claims is left out."""
    artefact = load_artefact(weights)
    model = PairModel(artefact)
    return [found for row in some if (found := _saying(row, model, artefact.budget))]


def _saying(row: Row, model: PairModel, budget: int) -> Saying | None:
    tables = shipped()
    sample = Sample("row", row.question or None, tuple(map(Context, row.contexts)), row.answer)
    compared = comparison(sample, tables)
    passages = compared.passages
    sources = Sources(row.contexts, compared.question.text, [passage.terms for passage in passages], tables)
    found = replace(compared, sources=sources).rows(claims_of(row.answer, row.question or None))
    if not found:
        return None
    pairs = [(" ".join(one.claim.words.split()), window(one.words, passages, row.contexts, budget=budget)) for one in found]  # noqa: E501  # fmt: skip
    signals = iter(model.read(model.pairs([pair for pair in pairs if pair[1]])))
    claims = [_numbers(one, next(signals) if pair[1] else None) for one, pair in zip(found, pairs, strict=True)]
    return Saying(row.family, row.bad, row.refuted, tuple(claims), tuple(missing_weight(one.missing) for one in found))


def _numbers(row: ClaimRow, signals: ModelSignals | None) -> tuple[float, ...]:
    """Without evidence the model reads nothing; words then say enough."""
    return numbers(
        logit(row.by_words), signals or ModelSignals(-2.0, -2.0, 2.0, 1.0), missing_run(row.words, row.matches)
    )


def rows() -> Iterator[Row]:
    """Every row that weights are fitted on or measured on."""
    for record in load("judge/dev/attributionbench/test_id500"):
        source = record["meta"]["src"]
        if source != "BEGIN":
            yield _row(record, "expertqa" if source == "ExpertQA" else "attributionbench")
    for name, family in (("wice/claim_test", "wice"), ("fever_symmetric/test", "fever_symmetric")):
        yield from (_row(record, family) for record in load(f"judge/dev/{name}"))
    yield from (_row(record, "fever_symmetric_dev") for record in load("judge/train/fever_symmetric/dev"))
    yield from (_row(one, "expertqa_answers") for one in load("judge/train/expertqa/all") if one["label"]["faithful"] is not None)  # noqa: E501  # fmt: skip
    yield from people()
    yield from planted()
    for name in SAMPLED:
        some = [one for one in load(f"judge/train/{name}") if one["label"]["faithful"] is not None]
        yield from (_row(one, name.split("/")[0]) for one in random.Random(SEED).sample(some, min(MOST, len(some))))
    for name in HUMAN:
        yield from inferences(name)


def _row(record: dict[str, Any], family: str) -> Row:
    label = record["label"]
    refuted = str(label.get("raw") or "").lower().startswith("refute") if family.startswith("fever") else None
    return Row(family, record["question"], record["contexts"], record["answer"], not label["faithful"], refuted)


def people() -> Iterator[Row]:
    """People's answers over their passages, and over the same without the sentences that one claim was taken from."""
    for record in load("relevance/clapnq/dev"):
        if record["label"]["answerable"]:
            yield from _with_cut("clapnq", {**record, "contexts": [" ".join(record["contexts"])]})
    for record in load("relevance/mtrag_answerability"):
        if record["label"]["answerability"] == "ANSWERABLE" and record["answer"] and record["contexts"]:
            yield from _with_cut("mtrag", record)


def _with_cut(family: str, record: dict[str, Any]) -> Iterator[Row]:
    question, answer = record["question"], record["answer"]
    yield Row(family, question, record["contexts"], answer, bad=False)
    said = claims_of(answer, question or None).claims
    if not said:
        return
    claim = claim_words(random.Random(f"{SEED}:{answer}").choice(said).words, shipped().rarity)
    left = []
    for text in record["contexts"]:
        sentences = [text[span.start : span.end] for span in spans(text)]
        left.append(" ".join(one for one in sentences if coverage(claim.rarity, set(terms(one))) < CUT))
    if sum(map(len, left)) < sum(map(len, record["contexts"])):
        yield Row(family, question, [text for text in left if text], answer, bad=True)


def planted() -> Iterator[Row]:
    """People's claims whose edits are kept from training, as written and with one edit of each kind."""
    rng = random.Random(SEED)
    for family, question, contexts, claim in human_answers():
        if is_planted(question):
            yield Row(f"planted_{family}", question, contexts, claim, bad=False, refuted=False)
            for edit in edits(claim, " ".join(contexts), rng, len(KINDS)):
                refuted = True if edit.kind in DENIES else None
                yield Row(f"planted_{family}", question, contexts, edit.text, bad=True, refuted=refuted)


def inferences(name: str) -> Iterator[Row]:
    """Pairs of `judge/nli` that no reader is taught, among sentences of other texts as in training."""
    some = [row for row in human_rows(name) if name in OUTSIDE or is_kept(row["group"])]
    some = random.Random(SEED).sample(some, min(MOST_HUMAN, len(some)))
    for row, evidence in zip(some, surrounded(name, some), strict=True):
        label = row["label"]
        yield Row(f"nli/{name}", None, [evidence], row["claim"], label != "supported", label == "contradicted")
