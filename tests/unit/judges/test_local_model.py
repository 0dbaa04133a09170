"""The model of the local judge: what is damaged is found out before it is believed, and which evidence it reads."""

import hashlib
import json
import math
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.draws import draws
from support.embedded import TINY

from ragwatch.judges.lexical.features import claim_words
from ragwatch.judges.lexical.passages import passage
from ragwatch.judges.local.artefact import ArtefactError, load
from ragwatch.judges.local.cross_encoder import BUDGET, MAX_SENTENCE_WORDS, MAX_SENTENCES, window
from ragwatch.judges.local.session import PairModel, TextPair, _signals


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the small model of the tests, to be damaged."""
    return Path(shutil.copytree(TINY, tmp_path / "weights"))


def change(folder: Path, path: str, value: Any) -> None:
    """Set one key of `local.json`; a path of its keys."""
    table = json.loads((folder / "local.json").read_text())
    *parents, last = path.split(".")
    inner = table
    for each in parents:
        inner = inner[each]
    inner[last] = value
    (folder / "local.json").write_text(json.dumps(table))


def test_a_sound_artefact_is_loaded(folder: Path) -> None:
    """Its version is that of its bytes: the same for a copy, another when a threshold moves."""
    found = load(folder)
    assert (found.supported_from, found.contradicted_from, found.max_pieces) == (0.5, 0.6, 96)
    assert found.version == load(TINY).version
    assert found.budget == 60
    change(folder, "thresholds.support", 0.51)
    assert load(folder).version != found.version
    table = json.loads((folder / "local.json").read_text())
    del table["budget"]
    (folder / "local.json").write_text(json.dumps(table))
    assert load(folder).budget == BUDGET  # the window's own, in words


def test_x25_a_file_of_other_bytes_is_refused(folder: Path) -> None:
    """One bit is enough; the digest found is told, so that it can be compared. A file that is missing is named.

    No path of the machine is told.
    """
    for name in ("reader.onnx", "tokenizer.json"):
        whole = (folder / name).read_bytes()
        content = bytearray(whole)
        content[len(content) // 2] ^= 1
        (folder / name).write_bytes(content)
        with pytest.raises(ArtefactError, match=rf"{name} of its model is not the file .* [0-9a-f]{{64}}"):
            load(folder)
        (folder / name).write_bytes(whole)
    for name in ("reader.onnx", "tokenizer.json", "local.json"):
        (folder / name).rename(folder / f"{name}.away")
        with pytest.raises(ArtefactError, match=f"^{name} of its model cannot be read$"):
            load(folder)
        (folder / f"{name}.away").rename(folder / name)


TEA = "Tea is green."
KNOTS: tuple[Any, ...] = (
    *([[0.0, 0.5], [1.0, 1.5]], [], [[0.0, 0.4], [0.0, 0.5]], [[0.0, 0.4], [-1.0, 0.5]], [[0.0, 0.4], [1.0, 0.3]]),
    *([[0.0, 0.0], [1.0, 0.3]], [[0.0, 0.4], [1.0, 1.0]], [[math.inf, 0.4]], [[0.0, 0.2], [1.0, math.nan], [2.0, 0.8]]),
)
"""Of a probability: beyond 1, none, two at a place, places or values that fall, certainties, and what is no number."""
IMPOSSIBLE: dict[str, tuple[Any, ...]] = {
    "version": (1, None),
    "support": ({},),
    "support.knots": KNOTS,
    "support.weights.lexical": (math.inf,),
    "support.weights": ({"lexical": 1.0},),
    "support.weights.cosine": (1.0,),
    "support.bias": ("NaN",),
    "contradiction.knots": ("none",),
    "thresholds.support": (1.5,),
    "thresholds.contradicted": (None,),
    "max_pieces": (math.inf, "many", 64, 513),
    "budget": (0, 97, None),
    "files": (None, {"reader.onnx": "0"}),
}


def test_a_table_that_says_what_cannot_be_is_refused(folder: Path) -> None:
    """Tables are read as data from outside, though they are ours; so are those that are cut off or of another kind."""
    whole = (folder / "local.json").read_text()
    for path, value in ((path, value) for path, values in IMPOSSIBLE.items() for value in values):
        change(folder, path, value)
        with pytest.raises(ArtefactError, match=r"local.json|released"):
            load(folder)
        (folder / "local.json").write_text(whole)
    for content in ("", "[]", "{", '"text"', "\x00"):
        (folder / "local.json").write_text(content)
        with pytest.raises(ArtefactError, match=r"local\.json"):
            load(folder)


def without_separator(content: bytes) -> bytes:
    """Pieces without one: there is no pair."""
    found = json.loads(content)
    found["model"]["vocab"]["[END]"] = found["model"]["vocab"].pop("[SEP]")
    found["added_tokens"] = [each for each in found["added_tokens"] if each["content"] != "[SEP]"]
    return json.dumps(found).encode()


def without_slope(content: bytes) -> bytes:
    """The graph's own slope made NaN: every logit of a piece is no number."""
    assert content.count(struct.pack("<f", 12.0)) == 1
    return content.replace(struct.pack("<f", 12.0), struct.pack("<f", math.nan))


@pytest.mark.parametrize(
    ("name", "changed", "why"),
    [
        ("reader.onnx", lambda _: b"no model", "its model cannot be opened"),
        ("tokenizer.json", lambda _: b"{}", "its model cannot be opened"),
        ("tokenizer.json", without_separator, r"lacks one of .*\[SEP\]"),
        ("reader.onnx", lambda content: content.replace(b"verdict", b"opinion"), "has unexpected outputs"),
        ("reader.onnx", without_slope, "not finite"),
    ],
)
def test_a_model_that_cannot_be_used_is_refused(
    folder: Path, name: str, changed: Callable[[bytes], bytes], why: str
) -> None:
    """A model that was shipped by mistake, its digest right: found out at once."""
    content = changed((folder / name).read_bytes())
    (folder / name).write_bytes(content)
    table = json.loads((folder / "local.json").read_text())
    change(folder, "files", {**table["files"], name: hashlib.sha256(content).hexdigest()})
    with pytest.raises(ArtefactError, match=why):
        PairModel(load(folder))


def test_pairs_are_cut_to_what_the_model_reads() -> None:
    """64 pieces of a claim at most, the rest of the room for the evidence; and the share of unknown pieces."""
    model = PairModel(load(TINY))
    long, short = model.pairs([("tea " * 1000, "green " * 1000), ("Tea is xylograph.", "Green tea.")])
    assert (len(long.claim), len(long.evidence), long.length) == (64, 96 - 64 - 3, 96)
    assert (len(short.claim), len(short.evidence)) == (4, 3)
    assert short.unknown == pytest.approx(1 / 7)
    assert model.pairs([("", "")])[0].length == 3


def test_a_pair_is_read_alone_whatever_its_company() -> None:
    """To the last bit; results come in the order of the questions."""
    model = PairModel(load(TINY))
    texts = [(f"Tea is {'not ' * (index % 2)}green.", "Tea is green. " * (index % 7)) for index in range(40)]
    pairs = model.pairs(texts)
    together = model.read(pairs)
    for pair, said in zip(pairs, together, strict=True):
        assert said == model.read([pair])[0]
    assert model.read([]) == []
    assert len(model.read(model.pairs([("", "Tea."), ("", "")]))) == 2


def test_a_model_says_its_verdict_in_two_logits_or_in_three() -> None:
    """Three exclude another, so each counts against the two others; two are taken as they are."""
    pair = TextPair((1, 2), (3,), 0.0)
    three, two = (_signals(pair, verdict, [9.0, 1.0, 3.0, 9.0]) for verdict in ([2.0, 1.0, 1.0], [2.0, -1.0]))
    assert (two.supported, two.contradicted) == (2.0, -1.0)
    assert (three.supported, three.contradicted) == pytest.approx((2.0 - 1.0 - math.log(2.0), 1.0 - 2.3132617))
    assert (two.worst, two.mean) == (three.worst, three.mean) == (3.0, 2.0)


def shown(claim: str, *texts: str, rarity: dict[str, float] | None = None, budget: int = BUDGET) -> str:
    """The window of a claim over these contexts."""
    return window(claim_words(claim, rarity or {}), [passage(text) for text in texts], texts, budget=budget)


WINDOWS: dict[str, tuple[str, list[str], int, str]] = {
    "a claim of two facts brings both sentences, not the one that repeats the first": (
        "The kettle boils water and the lamp dims.",
        ["A kettle boils water. This kettle boils much water. It is blue. A lamp of ours dims."],
        10,
        "A kettle boils water. A lamp of ours dims.",
    ),
    "sentences stand in the order of the documents, contexts by rank": (
        "Lions hunt zebras at night.",
        ["They hunt.", "Night falls. Lions hunt zebras."],
        BUDGET,
        "They hunt. Night falls. Lions hunt zebras.",
    ),
    "of equals the earlier one": (TEA, ["Green tea here. Green tea there."], 3, "Green tea here."),
    "of equal gains the fuller sentence": (
        "Black coffee and milk and tea.",
        ["Black coffee, milk. Tea it is. Tea with milk."],
        6,
        "Black coffee, milk. Tea with milk.",
    ),
    "room that is left goes to the sentences that say most, never to one without a term": (
        TEA,
        ["Green tea. Rain falls. Some tea. Tea, so green."],
        BUDGET,
        "Green tea. Some tea. Tea, so green.",
    ),
    "nothing of the claim": (TEA, ["Lions sleep."], BUDGET, ""),
    "no context": (TEA, [], BUDGET, ""),
    "a claim without terms": ("It is.", ["It is."], BUDGET, ""),
    "an empty context": (TEA, [""], BUDGET, ""),
    "a passage that comes twice is shown once": (
        TEA,
        ["Green tea.", "Green tea.", "Some tea."],
        BUDGET,
        "Green tea. Some tea.",
    ),
    "a scrap of a sentence is left out for the short one behind it": (
        "Green tea and coffee.",
        [f"Green tea is all they have. Coffee {'so ' * 30}. Their tea."],
        11,
        "Green tea is all they have. Their tea.",
    ),
}


@pytest.mark.parametrize("name", WINDOWS)
def test_which_sentences_are_shown(name: str) -> None:
    """What each of these claims brings from its contexts."""
    claim, texts, budget, evidence = WINDOWS[name]
    assert shown(claim, *texts, budget=budget) == evidence


def test_rare_words_weigh_more() -> None:
    """With room for one sentence it is the one with the rare word, though the other holds two common ones."""
    common = {"big": 0.1, "hous": 0.1}
    text = "A very big house, a big one indeed. The axolotl is a most curious kind of beast."
    assert shown("The axolotl has a big house.", text, rarity=common, budget=9).startswith("The axolotl")


def test_a_window_is_bounded() -> None:
    """Six sentences at most, however short they are; a megabyte of base64 in one "word" does not get through."""
    found = shown("Tea is green.", " ".join(f"Tea number {index}." for index in range(20)))
    assert found.count("Tea") == MAX_SENTENCES
    assert len(shown("Tea is green.", f"tea {'x' * 100_000} green")) <= MAX_SENTENCE_WORDS * 25


@pytest.mark.parametrize(
    ("claim", "text", "budget", "words", "kept"),
    [
        *(
            ("Tea is green.", f"{'so ' * before}green tea{' so' * behind}", BUDGET, before + behind + 2, "green tea")
            for before in (0, 3, 500)
            for behind in (0, 3, 500)
        ),
        # Not at its first term, but where the terms that are still missing stand together.
        (
            "Green tea grows.",
            f"tea {'so ' * 200}green tea grows here {'so ' * 200}green",
            BUDGET,
            999,
            "tea grows here so",
        ),
        # To the room that is left behind another sentence.
        (
            "Green tea and coffee.",
            f"Green tea is what they all have in the hills. So {'so ' * 30} coffee {'so ' * 30}.",
            20,
            20,
            "coffee",
        ),
    ],
)
def test_a_long_sentence_is_cut_around_what_matters(claim: str, text: str, budget: int, words: int, kept: str) -> None:
    """The words of the claim are kept wherever they stand, with text around them."""
    found = shown(claim, text, budget=budget)
    assert kept in found
    assert len(found.split()) == min(MAX_SENTENCE_WORDS, words)


@pytest.mark.costly
@given(
    st.text(alphabet="tea gr\n.n-é中 1", max_size=60),
    st.lists(st.text(alphabet="tea gr\n.n-é中 1", max_size=200), max_size=4),
    st.integers(min_value=1, max_value=BUDGET),
)
@settings(max_examples=draws(50), deadline=None)
def test_any_text_stays_within_its_budget(claim: str, texts: list[str], budget: int) -> None:
    """Whatever the text, there are never more words than allowed."""
    assert len(shown(claim, *texts, budget=budget).split()) <= budget
