"""The kind `detector`: its models read as their reference implementation does, and rule on claims with the words."""

import json
import shutil
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import pytest
from support.detector_pairs import COUNT, PAIRS
from support.embedded import LEXICAL, an_answer, left_to_words, read_by
from support.kit import a_judge_context

from ragwatch.errors import JudgeError
from ragwatch.judges.claims.limits import unlimited
from ragwatch.judges.detector import artefact
from ragwatch.judges.detector.artefact import FAMILIES, Classes, Family, Name, Reads, Signals, open_detector
from ragwatch.judges.detector.judge import DetectorJudge, Options, build
from ragwatch.judges.detector.reading import MOST, DetectorPass, LexicalOnlyReason, fused, windows_of
from ragwatch.judges.detector.session import DetectorModel, TokenSignal
from ragwatch.judges.error_rates import rates
from ragwatch.judges.lexical import judge as lexical
from ragwatch.judges.lexical.passages import passages_of
from ragwatch.judges.lexical.reader import CrossEncoder
from ragwatch.judges.lexical.rows import ModelRules, Thresholds
from ragwatch.model.evidence import Cell, ClaimVerdict, Evidence
from ragwatch.model.quantities import Quantity
from ragwatch.model.sample import Sample
from ragwatch.statistics.scores import score_all
from ragwatch.telemetry import Telemetry

DATA = Path(__file__).parents[2] / "data" / "detector"
MODELS: tuple[Name, ...] = ("nli", "lettucedetect", "minicheck_deberta", "hhem")
ABSENT, CONTRADICTED, SUPPORTED = ClaimVerdict.NOT_IN_CONTEXT, ClaimVerdict.CONTRADICTED, ClaimVerdict.SUPPORTED
MUSEUM = "The museum opens at nine in summer. Entry costs twelve euros for adults."
FERRY = "The ferry leaves every forty minutes from the northern pier."
GRAPH = (DATA / "neutral" / "model.onnx").read_bytes()


def a_model(name: Name, **options: Any) -> DetectorModel:
    """A small model of the tests."""
    return DetectorModel(open_detector(DATA / name, family=name, max_megabytes=1, **options))


def a_judge(folder: Path | None = None, telemetry: Telemetry | None = None, **options: object) -> DetectorJudge:
    """A judge with the model that knows nothing."""
    given = Options.model_validate({"model": folder or DATA / "neutral"} | options)
    return build(given, name="reader", context=a_judge_context(telemetry))


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.slow)], ids=["some", "all"])
def test_a_model_reads_as_its_reference_implementation(name: Name, step: int) -> None:
    """Logits of 500 pairs differ from those of `transformers` by less than 1e-4, tokenisation and template included.

    `tools/tiny_detectors.py` recorded them: of a token classifier the worst, the best and the sum over the answer.
    """
    reference = json.loads((DATA / name / "reference.json").read_text(encoding="utf-8"))
    assert len(reference) == len(PAIRS) == COUNT
    model = a_model(name)
    classes = artefact.classes_of(FAMILIES[name], json.loads((DATA / name / "config.json").read_text()))
    for pair, expected in list(zip(PAIRS, reference, strict=True))[::step]:
        if name == "lettucedetect":
            logits = [-token.support for token in model.answer(pair.question, [pair.context], pair.claim) or ()]
            assert [max(logits), min(logits), sum(logits)] == pytest.approx(expected, abs=1e-4)
        else:
            wanted = artefact.signals_of(classes, expected)
            assert model.claim(pair.context, pair.claim) == pytest.approx(wanted, abs=1e-4)


def test_tokens_of_an_answer_have_its_offsets() -> None:
    """They cover the answer from its beginning to its end, in order."""
    answer = "Café ✓ opens  at\nnine. Zürich 東京."
    tokens = a_model("lettucedetect").answer("When?", [MUSEUM], answer) or []
    assert (tokens[0].start, tokens[-1].end) == (0, len(answer))
    assert all(before.start <= after.start for before, after in pairwise(tokens))


@pytest.mark.parametrize("name", MODELS)
def test_special_tokens_in_a_text_are_blanks(name: Name) -> None:
    """A context cannot end itself and speak as the claim, nor can an answer."""
    model = a_model(name)
    for special in ("</s>", "[SEP]", "<pad>", "<s>", "[CLS]"):
        blank = " " * len(special)
        if name == "lettucedetect":
            texts = [(f"Tea.{mark}Tea.", f"It is{mark}green.") for mark in (special, blank)]
            read: list[object] = [model.answer("Which?", [context], answer) for context, answer in texts]
        else:
            read = [model.claim(f"Tea.{mark}Tea is green.", f"Tea{mark}is.") for mark in (special, blank)]
        vocabulary = (DATA / name / "tokenizer.json").read_text(encoding="utf-8")
        if f'"content":"{special}"' in vocabulary:
            assert read[0] == read[1]


def test_what_the_classes_of_a_model_mean() -> None:
    """Labels of NLI models stand in any order; two-way ones read no contradiction, and other labels are refused."""
    orders: list[tuple[dict[str, str], Classes]] = [
        ({"0": "CONTRADICTION", "1": "NEUTRAL", "2": "ENTAILMENT"}, Classes((0, 1), 2, 0)),
        ({"0": "entailment", "1": "neutral", "2": "contradiction"}, Classes((1, 2), 0, 2)),
        ({"0": "entailment", "1": "not_entailment"}, Classes((1,), 0)),
    ]
    for labels, classes in orders:
        assert artefact.classes_of(FAMILIES["nli"], {"id2label": labels}) == classes
    with pytest.raises(ValueError, match="no label `entailment`"):
        artefact.classes_of(FAMILIES["nli"], {"id2label": {"0": "LABEL_0", "1": "LABEL_1"}})
    signals = artefact.signals_of(Classes((0, 1), 2, 0), [2.0, 0.0, 1.0])
    assert signals == pytest.approx(Signals(1.0 - 2.126928, 2.0 - 1.313262), abs=1e-5)
    with pytest.raises(JudgeError, match="not finite"):
        artefact.signals_of(Classes((0,), 1), [float("nan"), 1.0])
    assert artefact.family_of({"architectures": ["RobertaForSequenceClassification"]}) is None


class Scripted:
    """Stands for a model: says what a test says, and keeps what it was asked.

    Args:
        says: Signals of a claim by words of the window; the last for any window.
        tokens: The words of an answer that no window supports.
    """

    def __init__(self, says: dict[str, Signals] | None = None, tokens: tuple[str, ...] = ()) -> None:
        self.says, self.tokens = says or {}, tokens
        self.asked: list[tuple[str, str]] = []

    def ends(self, text: str) -> list[int]:
        """A token for each character."""
        return list(range(1, len(text) + 1))

    def claim(self, context: str, claim: str) -> Signals | None:
        """See `DetectorModel.claim`."""
        self.asked.append((context, claim))
        return next(signals for words, signals in self.says.items() if words in context)

    def answer(self, _question: str | None, contexts: tuple[str, ...], answer: str) -> list[TokenSignal] | None:
        """See `DetectorModel.answer`."""
        self.asked.append(("\n".join(contexts), answer))
        starts = [index for index, char in enumerate(answer) if char.isalpha()]
        bad = [range(answer.find(word), answer.find(word) + len(word)) for word in self.tokens]
        return [TokenSignal(at, at + 1, -5.0 if any(at in span for span in bad) else 5.0) for at in starts]


def ruled(
    model: Scripted,
    sample: Sample,
    reads: Reads = Reads.PAIR,
    *,
    window: int = 400,
    max_pairs: int = 64,
    contradicts: bool = True,
) -> tuple[Evidence, dict[LexicalOnlyReason, int]]:
    """The evidence of a sample as the judge reads it with a scripted model, and what was left to words."""
    counts: dict[LexicalOnlyReason, int] = {}
    classes, rules = Classes((0, 1), 2, 0 if contradicts else None), ModelRules(Thresholds(), 0.5, 0.8, max_pairs)
    made = DetectorPass(cast("DetectorModel", model), Family(reads, 512, window), classes, rules, counts.update)

    class Judge(lexical.LexicalJudge):
        def _cross_encoder_within(self, sample: Sample, deadline: Any) -> CrossEncoder:
            return lambda *texts: made(*texts, sample=sample, check=deadline)

    return Judge(lexical.Options(), name="reader", context=a_judge_context()).evidence(sample), counts


def test_the_three_verdicts() -> None:
    """Support is the mean of both logits; a claim that is not supported may be contradicted."""
    answer = "The museum opens at nine in summer. The ferry leaves every ten minutes. The garden has two hundred lions."
    sample = an_answer(answer, MUSEUM, FERRY)
    yes, against, no = Signals(4.0, -4.0), Signals(-4.0, 3.0), Signals(-4.0, -4.0)
    # No context has the numbers of the second and third claim: they are not supported whatever the model says.
    for signals, verdicts in ((yes, [SUPPORTED, ABSENT, ABSENT]), (against, [CONTRADICTED] * 3), (no, [ABSENT] * 3)):
        evidence, _ = ruled(Scripted({"": signals}), sample)
        assert [claim.verdict for claim in evidence.claims] == verdicts
        assert evidence.reads_contradiction
    assert fused(3.0, 99.0) == fused(3.0, MOST)
    # Of a model that does not read contradiction, their share is unknown, and no zero.
    evidence, _ = ruled(Scripted({"": Signals(-4.0)}), an_answer("The museum opens at ten.", MUSEUM), contradicts=False)
    assert not evidence.reads_contradiction
    assert score_all(evidence)[Quantity.CONTRADICTION] is None
    assert [claim.verdict for claim in evidence.claims] == [ABSENT]


def test_the_best_window_counts_and_names_the_context() -> None:
    """A claim is read against each window; where words do not say, the context of the best one is its cell."""
    model = Scripted({"forty": Signals(6.0, -6.0), "": Signals(-6.0, -6.0)})
    answer = "Boats go north in less than an hour each time."
    evidence, _ = ruled(model, an_answer(answer, MUSEUM, FERRY), window=90)
    assert model.asked == [(MUSEUM, answer), (FERRY, answer)]
    (claim,) = evidence.claims
    assert (claim.verdict, claim.cells) == (SUPPORTED, (None, Cell.ALONE))


def test_a_token_classifier_reads_the_answer_once_for_each_window() -> None:
    """A claim with a token that no window supports is not supported; the others are."""
    answer = "The museum opens at nine in summer. Entry costs thirty euros for adults."
    model = Scripted(tokens=("thirty",))
    evidence, _ = ruled(model, an_answer(answer, MUSEUM, FERRY), Reads.ANSWER, window=90, contradicts=False)
    assert [claim.verdict for claim in evidence.claims] == [SUPPORTED, ABSENT]
    assert model.asked == [(MUSEUM, answer), (FERRY, answer)]


def test_the_facts_of_a_sentence() -> None:
    """A supported sentence supports its facts; of another, the least fact is the sentence's."""
    answer = "The museum opens at nine in summer and closes at five in winter."
    for signals in (Signals(6.0, -6.0), Signals(-6.0, -6.0)):
        evidence, _ = ruled(Scripted({"": signals}), an_answer(answer, answer))
        supports = [claim.support or 0.0 for claim in evidence.claims]
        assert len({claim.verdict for claim in evidence.claims}) == 1
        assert min(supports) == pytest.approx(evidence.claims[supports.index(min(supports))].support)


def test_what_exceeds_the_pairs_is_left_to_words_and_counted() -> None:
    """The windows with most words of a claim are read; claims beyond `max_pairs` have the lexical ruling."""
    answer = "The museum opens at nine in summer. The ferry leaves every forty minutes."
    contexts = (*["Tomatoes need full sun and regular watering in dry summers."] * 3, MUSEUM, FERRY)
    model = Scripted({"": Signals(4.0, -4.0)})
    _, counts = ruled(model, an_answer(answer, *contexts), window=90, max_pairs=2)
    assert [context for context, _ in model.asked] == [MUSEUM, FERRY]
    assert counts == {}
    evidence, counts = ruled(Scripted({"": Signals(4.0, -4.0)}), an_answer(answer, MUSEUM, FERRY), max_pairs=1)
    assert counts == {LexicalOnlyReason.TOO_MANY: 1}
    sample = an_answer(answer, MUSEUM, FERRY)
    _, counts = ruled(Scripted(), sample, Reads.ANSWER, window=90, max_pairs=1, contradicts=False)
    assert counts == {LexicalOnlyReason.TOO_MANY: 2}
    assert score_all(evidence)[Quantity.CONTRADICTION] is None


def test_windows_hold_whole_contexts_and_cut_only_what_is_longer() -> None:
    """Every character of a long context is in some window, in order, and no window is longer than allowed."""
    texts = ["Short.", " ".join(f"Sentence {number} says little." for number in range(40)), "x" * 900, "", "End."]
    windows = windows_of(texts, passages_of(texts), Scripted().ends, tokens=120, check=unlimited)
    assert windows[0].texts[0] == "Short."
    assert all(sum(map(len, window.texts)) <= 120 for window in windows)
    for rank, text in enumerate(texts):
        pieces = [part for window in windows for at, part in zip(window.ranks, window.texts, strict=True) if at == rank]
        assert "".join("".join(pieces).split()) == "".join(text.split())
    few = windows_of(["Tea.", "Tin."], passages_of(["Tea.", "Tin."]), Scripted().ends, tokens=120, check=unlimited)
    assert [window.ranks for window in few] == [(0, 1)]


def test_a_claim_or_an_answer_that_is_too_long_for_the_model_is_left_to_words() -> None:
    """It is counted, and has the ruling of the lexical judge."""
    long = "The museum " + "opens at nine and " * 400 + "closes."
    telemetry = Telemetry()
    judge = a_judge(telemetry=telemetry)
    claims = judge.evidence(an_answer(long, MUSEUM)).claims
    words = read_by(LEXICAL, long, MUSEUM).claims
    assert [claim.verdict for claim in claims] == [claim.verdict for claim in words]
    assert left_to_words(telemetry).keys() == {"too_long"}
    assert a_model("lettucedetect").answer("When?", [MUSEUM], long) is None


def test_the_time_limit_holds_for_the_model_too() -> None:
    """What takes longer is left unjudged, never read in part."""
    with pytest.raises(JudgeError, match="CPU time"):
        a_judge(max_seconds=1e-4).evidence(an_answer(f"{MUSEUM} " * 20, *[MUSEUM, FERRY] * 10))


def test_the_version_names_all_that_verdicts_depend_on(tmp_path: Path) -> None:
    """Another model, family, threshold, number of pairs or language is another version; none has a level of its own."""
    plain = a_judge()
    options: list[dict[str, object]] = [{"support": 0.6}, {"max_pairs": 3}, {"max_tokens": 100}, {"languages": ["de"]}]
    others = [a_judge(**option) for option in options]
    folder = Path(shutil.copytree(DATA / "neutral", tmp_path / "other"))
    (folder / "tokenizer.json").write_text((folder / "tokenizer.json").read_text(encoding="utf-8") + "\n")
    versions = {judge.version for judge in (plain, *others, a_judge(folder))}
    assert len(versions) == 6
    assert plain.model.startswith("detector-nli-")
    assert rates("detector", plain.version) == {}


@pytest.mark.parametrize(
    ("name", "content", "options", "why"),
    [
        ("model.onnx", GRAPH[:5000], {}, "cannot be run"),
        ("ragwatch.json", b'{"files": {"model.onnx": "00"}}', {}, "not the file that was fetched"),
        ("model.onnx", None, {}, "has none of model.onnx, onnx/model.onnx, model.safetensors"),
        ("tokenizer.json", None, {}, "tokenizer.json of its model cannot be read"),
        ("config.json", None, {}, "config.json of its model cannot be read"),
        ("config.json", b"[1]", {}, "not a mapping"),
        ("config.json", b"[" * 100_000, {}, "invalid"),
        ("config.json", b'{"architectures": ["BertModel"]}', {}, "set `family` to one of: lettucedetect,"),
        ("config.json", b'{"id2label": {"0": "entailment", "9": "other"}}', {}, "missing"),
        ("large.onnx", b"0" * 2_000_000, {"max_model_mb": 1, "graph": "large.onnx"}, "more than max_model_mb"),
        ("../config.json", b"{}", {"graph": "../config.json"}, "outside its folder"),
    ],
)
def test_without_a_model_it_falls_back_to_words_and_says_why(
    tmp_path: Path, name: str, content: bytes | None, options: dict[str, object], why: str
) -> None:
    """Its version is then that of the lexical judge."""
    folder = Path(shutil.copytree(DATA / "neutral", tmp_path / "model"))
    if content is None:
        (folder / name).unlink()
    else:
        (folder / name).write_bytes(content)
    judge = a_judge(folder, **options)
    assert why in (judge.fallback or "")
    assert (judge.version, judge.kind) == (LEXICAL.version, "detector")
    assert judge.evidence(an_answer(MUSEUM, MUSEUM)) == LEXICAL.evidence(an_answer(MUSEUM, MUSEUM))


def test_torch_reads_as_transformers_does(tmp_path: Path) -> None:
    """Where there is no graph, weights are run."""
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    torch.manual_seed(1)
    (tmp_path / "tokenizer.json").write_bytes((DATA / "nli" / "tokenizer.json").read_bytes())
    labels = {0: "contradiction", 1: "entailment", 2: "neutral"}
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    sizes |= {"vocab_size": 400, "max_position_embeddings": 600, "type_vocab_size": 1}
    config = transformers.RobertaConfig(id2label=labels, **sizes)
    model = transformers.RobertaForSequenceClassification(config).eval()
    for weights in model.parameters():
        torch.nn.init.normal_(weights, std=0.2)
    model.save_pretrained(tmp_path)
    read = DetectorModel(open_detector(tmp_path, max_megabytes=1))
    fast = transformers.PreTrainedTokenizerFast(tokenizer_file=str(tmp_path / "tokenizer.json"))
    for pair in PAIRS[:50]:
        with torch.no_grad():
            inputs = fast(pair.context, pair.claim, return_tensors="pt", return_token_type_ids=False)
            logits = model(**inputs).logits[0].tolist()
        wanted = artefact.signals_of(Classes((0, 2), 1, 0), logits)
        assert read.claim(pair.context, pair.claim) == pytest.approx(wanted, abs=1e-4)


def test_torch_reads_hhem(tmp_path: Path) -> None:
    """HHEM has no class in `transformers`: its weights are those of T5 below `t5.`."""
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    save = pytest.importorskip("safetensors.torch").save_file
    sizes = {"vocab_size": 300, "d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 2}
    config = transformers.T5Config(**sizes, feed_forward_proj="gated-gelu", tie_word_embeddings=False, num_labels=2)
    model = transformers.T5ForTokenClassification(config).eval()
    shared = {"transformer.encoder.embed_tokens.weight"}
    state = {f"t5.{name}": value for name, value in model.state_dict().items() if name not in shared}
    save(state, str(tmp_path / "model.safetensors"))
    (tmp_path / "config.json").write_text(json.dumps({"architectures": ["HHEMv2ForSequenceClassification"], **sizes}))
    (tmp_path / "tokenizer.json").write_bytes((DATA / "hhem" / "tokenizer.json").read_bytes())
    read = DetectorModel(open_detector(tmp_path, max_megabytes=1))
    fast = transformers.PreTrainedTokenizerFast(tokenizer_file=str(tmp_path / "tokenizer.json"))
    for pair in PAIRS[:20]:
        text = FAMILIES["hhem"].template.format(context=pair.context, claim=pair.claim)
        with torch.no_grad():
            inputs = fast(text, return_tensors="pt", return_token_type_ids=False)
            wanted = artefact.signals_of(Classes((0,), 1), model(**inputs).logits[0, 0].tolist())
        assert read.claim(pair.context, pair.claim).support == pytest.approx(wanted.support, abs=1e-4)  # type: ignore[union-attr]
