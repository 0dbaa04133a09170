"""Canary suites: read from YAML, JSONL and the configuration, and refused with a place."""

import json
import re
import sys
from codecs import BOM_UTF8
from pathlib import Path
from typing import Any

import pytest

from ragwatch.config import parse
from ragwatch.config.canaries import canaries, read_suite
from ragwatch.config.text import load_text
from ragwatch.errors import ConfigError
from ragwatch.statistics.canary.definition import Category, Expected, Grade

DATA = Path(__file__).parents[2] / "data" / "canaries"
INVALID = sorted(DATA.glob("invalid-*.yaml"))
assert len(INVALID) >= 20, "the folder is elsewhere"


def test_every_key_means_what_it_says() -> None:
    """A suite with every key, in YAML, JSONL and the configuration."""
    refunds, office, parcel, spaceship = read_suite(DATA / "shop.yaml")
    assert refunds.name == "how-long-do-refunds-take"
    assert refunds.expected == (Expected("refunds-1"), Expected("refunds-2", None, Grade.HIGHLY_RELEVANT))
    assert (refunds.min_relevance_score, refunds.min_recall, refunds.tags) == (0.8, 1.0, ("money",))
    assert refunds.reference == "Refunds are paid within fourteen days."
    assert (office.name, office.expected[0].id, office.expected[0].grade) == ("where-is-the-office", None, 2)
    assert (parcel.min_recall, [context.id for context in parcel.expected]) == (0.6, ["returns-1", "returns-2", "17"])
    assert (spaceship.category, spaceship.negative, spaceship.expected) == (Category.NEGATIVE, True, ())
    from_yaml = read_suite(DATA / "shop.yaml")
    assert read_suite(DATA / "shop.jsonl") == from_yaml
    assert canaries(load_text(DATA / "shop.yaml")["items"], "canaries[0].items") == from_yaml


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ({"expected": ["a"], "max_relevance_score": 0.5}, "max_relevance_score: is for negative canaries; write min_"),
        ({"expected": [], "max_relevance_score": 1, "min_relevance_score": 1}, "max_relevance_score: says the same"),
    ],
)
def test_a_score_above_which_a_hit_is_wrong(item: dict[str, object], message: str) -> None:
    """`expected: []` alone is a negative canary; the score is for these only, and is given once."""
    (empty,) = canaries([{"query": "q", "expected": []}], "items")
    (limited,) = canaries([{"query": "q", "category": "negative", "max_relevance_score": 0.5}], "items")
    assert (empty.negative, empty.min_relevance_score, limited.min_relevance_score) == (True, None, 0.5)
    with pytest.raises(ConfigError, match=re.escape(message)):
        canaries([{"query": "q"} | item], "items")


@pytest.mark.parametrize("path", INVALID, ids=lambda path: path.stem.removeprefix("invalid-"))
def test_wrong_files_say_what_is_wrong(path: Path) -> None:
    """One line names the file, the place, what is wrong, and what to write instead."""
    expected = path.read_text(encoding="utf-8").splitlines()[0].removeprefix("# expect: ")
    with pytest.raises(ConfigError) as caught:
        read_suite(path)
    assert expected in str(caught.value)
    assert str(caught.value).startswith(path.name)


def test_everything_wrong_is_told_at_once() -> None:
    """A line for each mistake, whichever canary it is in."""
    items = [{"query": "a"}, {"qery": "b", "expected": ["x"]}, {"query": "c", "expected": ["x"]}, 3]
    with pytest.raises(ConfigError) as caught:
        canaries(items, "canaries[2].items")
    places = [line.split(":")[0].removeprefix("canaries[2].items") for line in str(caught.value).splitlines()]
    assert places == ["[0]", "[1].query", "[1].qery", "[3]"]


def write(tmp_path: Path, *lines: Any, name: str = "suite.jsonl") -> Path:
    """A file of these lines."""
    path = tmp_path / name
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines))
    return path


def test_what_is_wrong_in_a_file_has_its_line(tmp_path: Path) -> None:
    """Blank lines count, as an editor counts them; all torn ones are told; a suite that was emptied is none."""
    good = {"query": "a", "expected": ["x"]}
    wrong: list[tuple[str, list[Any], list[str]]] = [
        ("blank.jsonl", [good, "", {"expected": ["x"]}], ["line 3.query: is missing"]),
        ("torn.jsonl", ['{"query": ', good, "nothing"], ["line 1: is not", "line 3: is not"]),
        ("empty.jsonl", [""], ["is empty; give at least one canary"]),
        ("empty.yaml", ["{}"], ["items: must be a list"]),
        ("gone.jsonl", [], ["cannot be read: No such file"]),
        ("gone.yaml", [], ["cannot be read: No such file"]),
    ]
    for name, lines, told in wrong:
        if lines:
            write(tmp_path, *lines, name=name)
        with pytest.raises(ConfigError) as caught:
            read_suite(tmp_path / name)
        messages = str(caught.value).splitlines()
        assert [part in message for part, message in zip(told, messages, strict=True)] == [True] * len(told), messages


def test_texts_are_left_as_they_stand(tmp_path: Path) -> None:
    """A suite is data: variables are questions about one; pairs of escapes are one character; a mark is none."""
    path = write(tmp_path, 'items: [{query: "What does ${HOME} mean?", expected: ["file:x"]}]', name="suite.yaml")
    (canary,) = read_suite(path)
    assert (canary.query, canary.expected[0].id) == ("What does ${HOME} mean?", "file:x")
    item = {"query": "Where is my parcel 😀?", "expected": [{"id": "🦆-1", "text": "𝄞"}], "name": "💡", "tags": ["🗂"]}
    (canary,) = read_suite(write(tmp_path, {"items": [item]}, name="suite.yaml"))
    assert r"\ud83d\ude00" in (tmp_path / "suite.yaml").read_text()
    assert (canary.query, canary.expected) == (item["query"], (Expected("🦆-1", "𝄞"),))
    assert (canary.name, canary.tags) == ("💡", ("🗂",))
    assert read_suite(write(tmp_path, item)) == (canary,)
    path = write(tmp_path, {"query": "a", "expected": ["x"]})
    expected = read_suite(path)
    path.write_bytes(BOM_UTF8 + path.read_bytes())
    assert read_suite(path) == expected


def test_sizes_have_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a huge file nor a huge list is read to its end."""
    lines = [{"query": f"q{number}", "expected": ["x"]} for number in range(4)]
    suites = sys.modules["ragwatch.config.canaries"]  # `ragwatch.config.canaries` may be a function of that name
    monkeypatch.setattr(suites, "MAX_CANARIES", 3)
    with pytest.raises(ConfigError, match="4 canaries, more than 3"):
        read_suite(write(tmp_path, *lines))
    monkeypatch.setattr(suites, "MAX_JSONL_BYTES", 20)
    with pytest.raises(ConfigError, match="larger than 20 bytes"):
        read_suite(write(tmp_path, *lines))


def test_the_spread_can_be_none(tmp_path: Path) -> None:
    """Who asks at set times may want just these."""
    probe = {"kind": "http", "url": "http://a/", "body": {"q": "{{ query }}"}, "contexts": "hits"}
    log = {"kind": "tail", "name": "app", "path": "app.jsonl"}
    for written, seconds in (("0s", 0.0), (0, 0.0), ("30s", 30.0), ("1d", 86400.0)):
        suite = {"suite": "docs", "jitter": written, "items": [{"query": "q", "expected": ["a"]}], "probe": probe}
        config = parse({"sources": [log], "canaries": [suite]}, folder=tmp_path)
        assert config.canaries[0].place.jitter == seconds
