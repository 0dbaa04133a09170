"""Encryption of stored texts: nothing readable on disk, rotation of keys, and clear errors instead of losses."""

import base64
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from support.draws import draws
from support.kit import AT, a_claim, a_draw, a_verdict, an_admission, an_evidence
from support.stores import PARAMETERS, Opened, found_by, readable

from ragwatch.errors import ConfigError, StoreError
from ragwatch.model.quantities import Quantity
from ragwatch.ports import Erasure, Query, Store, StoredRun
from ragwatch.statistics.labels.label import Label
from ragwatch.statistics.tally import Tallies
from ragwatch.stores import encryption
from ragwatch.stores.encryption import EncryptionOptions, TextCipher, parse_keys

pytest.importorskip("cryptography", reason="needs the extra encryption")

OLD, NEW = bytes(range(32)), bytes(range(1, 33))
LONG = "".join(os.urandom(30).hex() for _ in range(1500))  # compresses badly: more than one segment


def text_of(key: bytes) -> str:
    """A key as people write it."""
    return base64.b64encode(key).decode()


def keys(*parts: bytes) -> dict[str, Any]:
    """Options of a store with these keys, the newest first."""
    return {"encryption": {"key": " ".join(map(bytes.hex, parts))}} if parts else {}


def fill(store: Store, mark: str, **parts: object) -> None:
    """Store a mark in every kind of row with texts, and in a pending draw."""
    draw, waiting = a_draw(f"r-{mark}", question=f"{mark} question?", **parts), a_draw(f"p-{mark}", answer=mark)
    store.admit(an_admission(draw, waiting))
    store.settle([a_verdict(draw, an_evidence(a_claim((1, 0), text=f"{mark} claim"), replies=(f"{mark} reply",)))])
    store.add_labels([Label(draw.key, "ann", AT, {Quantity.FAITHFULNESS: 1.0}, note=f"{mark} note")])
    store.record_run(StoredRun("canary", "docs", AT, failing=False, body={"query": f"{mark} canary"}), Tallies())
    store.remember(f"state {mark.lower()}", {"text": f"{mark} state"})


def check(store: Store, mark: str) -> None:
    """Every row of `fill` is read as it was written, in every way of reading."""
    (whole,) = [row for row in store.find(Query()) if row.verdict.id == f"r-{mark}"]
    assert whole.sample is not None
    assert (whole.sample["question"], whole.verdict.claims[0].text) == (f"{mark} question?", f"{mark} claim")
    (entry,) = [one for one in store.entries(Query()) if one.place["key"] == whole.verdict.key]
    assert store.replies(entry.seq) == (f"{mark} reply",)
    (short,) = [row for row in store.summaries(Query()) if row.line["id"] == f"r-{mark}"]
    assert (short.sample or {})["question"] == f"{mark} question?"
    assert mark in {draw.sample.answer for draw in store.lease("embedded", 9, now=AT + len(mark), seconds=0.0)}
    assert f"{mark} note" in [label.note for label in store.labels(0.0)]
    assert {"query": f"{mark} canary"} in [run.body for run in store.runs("canary", "docs", 9)]
    assert store.recall(f"state {mark.lower()}") == {"text": f"{mark} state"}
    assert store.damaged() == 0


def test_x5_the_key_is_nowhere_in_the_state(opened: Opened, tmp_path: Path) -> None:
    """X5: neither a key, nor a text, compressed or not, stands in a file; an id of the key does, and opens all."""
    store = opened(**keys(OLD))
    fill(store, "SECRET", answer=LONG)
    content = readable(tmp_path)
    assert store.rules.cipher.current.hex().encode() in content
    for form in (b"SECRET", OLD, OLD.hex().encode(), text_of(OLD).encode()):
        assert form not in content
    check(store, "SECRET")
    assert store.find(Query())[0].sample["answer"] == LONG
    opened.close()
    assert b"SECRET" not in readable(tmp_path)


@pytest.mark.parametrize("opened", PARAMETERS, indirect=True)
def test_keys_rotate(opened: Opened) -> None:
    """The first key writes and all read; once nothing is encrypted with an old key, it may go."""
    fill(opened(**keys(OLD)), "first")
    store = opened(**keys(NEW, OLD))
    check(store, "first")
    fill(store, "second")
    for given_keys, what in (((), "no key is configured"), ((NEW,), "is that one")):
        message = rf"store\.encryption: [0-9]+ stored texts are encrypted with .*key.* {what}"
        with pytest.raises(ConfigError, match=message):
            opened(**keys(*given_keys))
    store = opened(**keys(NEW, OLD))
    check(store, "second")
    with store.engine.transaction() as writer:
        for rows in ("labels", "runs", "states WHERE name != 'encryption'"):
            writer.execute(f"DELETE FROM {rows}")  # noqa: S608 - a literal
    store.forget(Erasure(frozenset({"r-first", "p-first"}), with_scores=True))
    assert found_by(opened(**keys(NEW))) == ["r-second"]


def test_a_state_without_encryption_stays_readable(opened: Opened, tmp_path: Path) -> None:
    """Old texts are read as they are, and encrypted when their row is written again."""
    fill(opened(), "OLDTEXT")
    store = opened(**keys(OLD))
    check(store, "OLDTEXT")
    fill(store, "NEWTEXT")
    store.remember("state oldtext", {"text": "OLDTEXT state"})
    check(store, "OLDTEXT")
    store.rewritten()
    opened.close()
    content = readable(tmp_path)
    assert b"NEWTEXT" not in content
    assert (b"OLDTEXT note" in content, b"OLDTEXT state" in content) == (True, False)


@settings(max_examples=draws(30))
@given(st.binary(max_size=64), st.integers(0, 3), st.integers(-2, 2))
def test_what_is_sealed_opens_again(start: bytes, segments: int, more: int) -> None:
    """Texts of any length come back; each is encrypted differently every time, and changes are noticed."""
    cipher = TextCipher([OLD])
    body = b"x" + start + b"a" * max(0, segments * encryption.SEGMENT_BYTES + more - len(start) - 1)
    sealed = cipher.seal(body)
    assert cipher.open(sealed) == body
    assert cipher.seal(body) != sealed
    first = cipher.open(sealed[: encryption.FIRST_SEGMENT_BYTES])
    assert first == body[: encryption.SEGMENT_BYTES]
    changed = bytearray(sealed)
    changed[encryption.HEADER_BYTES + len(start) % 16] ^= 1
    assert cipher.open(bytes(changed)) == bytes(changed)
    assert TextCipher([NEW]).open(sealed) == sealed


def test_segments_cannot_be_moved() -> None:
    """Two segments in the other order, or the last one in front, do not decrypt."""
    cipher = TextCipher([OLD])
    sealed = cipher.seal(bytes(3 * encryption.SEGMENT_BYTES))
    size = encryption.SEGMENT_BYTES + 16
    parts = [sealed[start : start + size] for start in range(encryption.HEADER_BYTES, len(sealed), size)]
    for order in ((1, 0, 2), (2, 0, 1), (0, 0, 2)):
        moved = sealed[: encryption.HEADER_BYTES] + b"".join(parts[n] for n in order)
        assert cipher.open(moved) == moved


def test_a_damaged_list_of_keys_is_an_error(opened: Opened) -> None:
    """It is not taken for a state without encryption."""
    opened(**keys(OLD)).engine._writer.execute("UPDATE states SET body = '{}' WHERE name = 'encryption'")
    with pytest.raises(StoreError, match="list of encryption keys is damaged"):
        opened(**keys(OLD))


def test_keys_in_files_and_variables(opened: Opened, tmp_path: Path) -> None:
    """One key per line or separated by spaces, in base64 (either alphabet) or hex, the newest first."""
    file = tmp_path / "key"
    file.write_text(f"{text_of(NEW)}\n{OLD.hex()}\n")
    from_file = EncryptionOptions(key_file=file).cipher()
    from_text = EncryptionOptions(key=f"{base64.urlsafe_b64encode(NEW).decode()}, {text_of(OLD)}").cipher()
    assert from_file.current == from_text.current
    assert from_file.ids == from_text.ids
    fill(opened(encryption={"key_file": file}), "mark")


def test_what_is_no_key_is_refused_without_showing_it(tmp_path: Path) -> None:
    """By option, with number or file; both or none of key and key_file is an error."""
    for text in ("", "short", text_of(OLD)[:-4], f"{text_of(OLD)} secret"):
        expected = r"^store\.encryption\.key: .*not 32 bytes in base64; create one"
        with pytest.raises(ConfigError, match=expected) as error:
            parse_keys(text, "store.encryption.key")
        assert not text or text.rsplit(maxsplit=1)[-1] not in str(error.value)
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe")
    for file in (tmp_path / "none", binary):
        with pytest.raises(ConfigError, match=r"store\.encryption\.key_file: .*(none|binary)"):
            EncryptionOptions(key_file=file).cipher()
    for parts in ({}, {"key": text_of(OLD), "key_file": "x"}):
        with pytest.raises(ValidationError, match="either key or key_file"):
            EncryptionOptions.model_validate(parts)
    assert text_of(OLD) not in repr(EncryptionOptions(key=text_of(OLD)))


def test_the_extra_is_named(opened: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No state is opened, and nothing is stored in clear instead."""
    monkeypatch.setitem(sys.modules, "cryptography.exceptions", None)  # as where it is not installed
    with pytest.raises(ConfigError, match=r"^store\.encryption: needs the extra `encryption`; run pip install"):
        opened(**keys(OLD))
    assert not (tmp_path / "state").exists()
    opened()
