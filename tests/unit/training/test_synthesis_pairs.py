"""Synthetic pairs: the same for the same seed, balanced, and as true as they say; labels of real sentences."""

import csv
import itertools
import json
import random
import re
from collections import Counter
from pathlib import Path

import kinds_labels
import pytest
from synthesis import Pair, crossing, making, pairs, recipes
from synthesis.corpus import Corpus
from synthesis.lexicon import Lexicon
from synthesis.scene import Change, Scene, World
from synthesis.wordnet import WordNet

BOUND = r"(more than|over|at least|no fewer than|in excess of|fewer than|under) ([\d,]+) tick"


@pytest.fixture(scope="module")
def made(corpus: Corpus, lexicon: Lexicon) -> list[Pair]:
    """Pairs of one seed."""
    return list(pairs(5, 1_500, corpus=corpus, lexicon=lexicon))


@pytest.mark.costly
def test_the_same_seed_makes_the_same_pairs(made: list[Pair], corpus: Corpus, lexicon: Lexicon) -> None:
    """Pairs depend on the seed and nothing else, and another seed makes others."""
    assert list(pairs(5, 300, corpus=corpus, lexicon=lexicon)) == made[:300]
    assert list(pairs(6, 300, corpus=corpus, lexicon=lexicon)) != made[:300]


def test_claims_verdicts_and_recipes(made: list[Pair]) -> None:
    """A claim is one sentence, whose spans mark what is unsupported; half are supported, each recipe occurs."""
    for item in made:
        assert re.fullmatch(r"[A-Z0-9](?:(?!  ).)*\.", item.claim), item.claim
        assert bool(item.spans) == (item.verdict != "supported")
        assert all(item.claim[start:end] == item.claim[start:end].strip() != "" for start, end in item.spans)
        assert all(first[1] <= second[0] for first, second in itertools.pairwise(item.spans))
    assert {item.group for item in made} == {"own:0", "own:1", "own:2", "own:3", "own:answer"}
    verdicts = Counter(item.verdict for item in made)
    assert 0.4 < verdicts["supported"] / len(made) < 0.65
    assert verdicts["contradicted"] > verdicts["not_in_context"] > 50
    families = {re.split(r"[-+~=]", item.recipe)[0] for item in made}
    assert families >= {"kind", "opposite", "number", "name", "deny", "added", "true", "elsewhere", "bounded", "flip"}


def scene(world: World, title: str, start: str) -> Scene:
    """The sentence of a passage that starts so."""
    passage = next(item for item in world.corpus.passages if item.title == title)
    first, last = next(span for span in passage.sentences if passage.text[span[0] :].startswith(start))
    return Scene(world, passage, first, last, random.Random(3))


def test_an_edit_is_read_all_ways_round(world: World) -> None:
    """Claim and twin are each supported by their own passage and contradicted by the other's."""
    at = scene(world, "Tarn Bridge", "Tarn Bridge is")
    start = at.text.index("wooden")
    change = Change(((start, start + 6, "metal"),), "kind-J", "contradicted", "contradicted", (("wooden", "metal"),))
    found = {item.recipe: item for item in making.of_change(at, change, random.Random(1))}
    verdicts = {"": "contradicted", "+": "supported", "~": "contradicted", "=": "supported"}
    assert {recipe: item.verdict for recipe, item in found.items()} == {
        f"kind-J{end}": v for end, v in verdicts.items()
    }
    for recipe, item in found.items():
        edited_passage = any("Tarn Bridge is a metal bridge" in text for text in item.passages)
        assert edited_passage == recipe.endswith(("+", "~"))
    assert found["kind-J"].claim == found["kind-J+"].claim
    assert found["kind-J~"].claim == found["kind-J="].claim
    (span,) = found["kind-J"].spans
    assert found["kind-J"].claim[slice(*span)].split()[-1] == "metal"


def test_bounds_hold(world: World) -> None:
    """A bounded count is supported exactly when the number in the passage lies on the right side."""
    rng, seen = random.Random(2), 0
    for _ in range(400):
        for item in recipes.bounded(world, rng):
            if match := re.search(BOUND, item.claim):
                bound, above = int(match[2].replace(",", "")), match[1] not in ("fewer than", "under")
                assert (item.verdict == "supported") == ((bound < 412_000) == above)
                seen += 1
    assert seen > 20


def test_moved_attributes_are_wrong_until_the_passages_are_exchanged(world: World) -> None:
    """What is said of one subject is contradicted of another, and supported once the passages say so."""
    rng = random.Random(4)
    found = next(made for _ in range(200) if (made := crossing.moved(world, rng)))
    wrong, right = found[0], found[1]
    assert (wrong.claim, wrong.verdict, right.verdict) == (right.claim, "contradicted", "supported")
    said = wrong.claim.rstrip(".")
    assert not any(said in text for text in wrong.passages)
    attribute = said[wrong.spans[0][0] :]
    assert any(attribute in text for text in wrong.passages)


def test_a_missing_wordnet_says_what_to_install(tmp_path: pytest.TempPathFactory) -> None:
    """Without WordNet's files the error names the package and the variable."""
    with pytest.raises(FileNotFoundError, match=r"apt-get install wordnet-base.*WORDNET"):
        WordNet(tmp_path)  # type: ignore[arg-type]


def test_a_label_has_no_text_and_each_sentence_has_one() -> None:
    """A line says where a sentence is, and none is labelled twice."""
    with kinds_labels.LABELS.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.reader(lines))[1:]
    for name, row, offset, length, digest, kind in rows:
        assert (name in kinds_labels.SETS, kind in kinds_labels.KINDS) == (True, True), row
        assert re.fullmatch(r"[\w.:#-]{1,100} \d+ [1-9]\d* [0-9a-f]{12}", f"{row} {offset} {length} {digest}"), row
    assert len({row[4] for row in rows}) == len(rows) >= 3000


def test_another_text_than_the_labelled_one_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A label holds for the text that was read."""
    answer = "Sure! Tea is green."
    monkeypatch.setattr(kinds_labels, "DATA", tmp_path)
    monkeypatch.setattr(kinds_labels, "LABELS", tmp_path / "labels.csv")
    monkeypatch.setattr(kinds_labels, "SETS", {"tea": (9, 0, 0)})
    for text, is_same in ((answer, True), (answer.replace("green", "black"), False)):
        kinds_labels.answers.cache_clear()
        row = {"id": "one", "answer": text, "label": {}, "meta": {}}
        (tmp_path / "tea.jsonl").write_text(json.dumps(row), encoding="utf-8")
        if is_same:
            sample = sorted(kinds_labels.sample())
            kinds_labels.write(sample, ["courtesy", "claim"])
            expected = [("Sure!", "courtesy"), ("Tea is green.", "claim")]
            assert [(one.text, kind) for one, kind in kinds_labels.labelled()] == expected
            assert "green" not in kinds_labels.LABELS.read_text(encoding="utf-8")
        else:
            with pytest.raises(SystemExit):
                list(kinds_labels.labelled())
    kinds_labels.answers.cache_clear()
