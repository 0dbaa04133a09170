"""`ragwatch label`: what a person says at a terminal, or in a file, is kept."""

import json
import shutil
import time
from contextlib import closing
from pathlib import Path
from random import Random

import pytest
from click.testing import Result
from support.answering import Asked, Reply, answering
from support.command_line import command, configured, refused
from support.kit import a_claim, a_draw, a_verdict, an_admission, an_evidence
from support.labelled import World

from ragwatch.commands.label import label_record, underlined_claims
from ragwatch.errors import RagwatchError
from ragwatch.model.quantities import Quantity
from ragwatch.ports import Query, Retention
from ragwatch.statistics.labels.label import Label
from ragwatch.stores.sqlite.store import SqliteStore

F = Quantity.FAITHFULNESS
ESCAPE = chr(27)
BEGIN = time.time() - 1800.0


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state that holds some judged answers."""
    state = tmp_path_factory.mktemp("judged") / "state"
    with closing(SqliteStore(state)) as store:
        World(store, Random(1), requests=60, begin=BEGIN)
    return state


@pytest.fixture
def config(judged: Path, tmp_path: Path) -> Path:
    """A configuration with a copy of that state."""
    shutil.copytree(judged, tmp_path / "state")
    return configured(tmp_path)


def run(config: Path, *arguments: str, said: str = "", verb: str = "label") -> Result:
    """The command, with what is typed."""
    whole = [verb, "--config", str(config), *(("--annotator", "ann") if verb == "label" else ()), *arguments]
    return command(*whole, said=said)


def labels(config: Path) -> list[Label]:
    """What the state holds."""
    store = SqliteStore(config.parent / "state")
    found = store.labels(0.0)
    store.close()
    return found


def test_a_word_on_every_claim(config: Path) -> None:
    """Question, contexts, answer and claims are shown; scores follow from the words, with a known probability."""
    found = run(config, "--count", "1", said="s\nS\nc\nn\np\ny\nodd one\n")
    assert found.exit_code == 0, found.output
    for text in ("What do cats do?", "context 1  Cats purr.", "answer  Cats purr.", "claim 4", "1 saved"):
        assert text in found.output
    assert "supported  " not in found.output  # what the judge thinks is not shown
    (word,) = labels(config)
    assert word.scores == {
        F: 0.5,
        Quantity.CONTRADICTION: 0.25,
        Quantity.ANSWER_RELEVANCY: 0.5,
        Quantity.TOP_RANKED_IGNORED: 0.0,
    }
    assert (word.annotator, word.note, len(word.claims)) == ("ann", "odd one", 4)
    assert word.probability is not None


def test_a_word_on_the_whole(config: Path) -> None:
    """With --whole, or where there are no claims, people judge the answer; what is no word is asked again."""
    found = run(config, "--count", "2", "--whole", said="x\nf\n-\n-\n\nn\nn\nn\n\n")
    assert "'x' is none of f, p, n, -, q" in found.output
    assert [dict(word.scores) for word in labels(config)] in (
        [{F: 1.0}, {F: 0.0, Quantity.ANSWER_RELEVANCY: 0.0, Quantity.TOP_RANKED_IGNORED: 1.0}],
        [{F: 0.0, Quantity.ANSWER_RELEVANCY: 0.0, Quantity.TOP_RANKED_IGNORED: 1.0}, {F: 1.0}],
    )


@pytest.mark.parametrize(("said", "kept"), [("q\n", []), ("", []), ("s\nq\n", [1]), ("s\ns\n", [2])])
def test_an_end_at_any_time(config: Path, said: str, kept: list[int]) -> None:
    """q, or the end of the input: what was said is kept, what was not begun is not."""
    assert run(config, said=said).return_value == 0
    assert [len(word.claims) for word in labels(config)] == kept


def test_out_and_in(config: Path, judged: Path, tmp_path: Path) -> None:
    """What is exported comes in elsewhere as it was; a bad line is named, and the others come in."""
    run(config, "--count", "3", "--whole", said="f\n-\n-\n\n" * 3)
    out = tmp_path / "labels.jsonl"
    assert run(config, "--export", str(out)).return_value == 0
    other = tmp_path / "other"
    shutil.copytree(judged, other / "state")
    there = configured(other)
    found = run(there, "--import", str(out))
    assert (found.return_value, found.stderr) == (0, "3 new, 0 replaced, 0 unmatched, 0 unreadable\n")
    assert labels(there) == labels(config)
    with out.open("a") as file:
        file.write('\n{"key": "k"\n[]\n{"source": "app", "id": "r9", "claims": ["supported", null]}\n')
    found = run(there, "--import", str(out))
    assert found.return_value == 1
    assert ":5: is not JSON: Expecting" in found.stderr
    assert ":6: is no JSON object" in found.stderr
    assert found.stderr.endswith("1 new, 3 replaced, 1 unmatched, 2 unreadable\n")
    assert refused(run(config, "--export", "-", "--import", str(out)))


def test_a_file_of_another_making(config: Path, tmp_path: Path) -> None:
    """A byte order mark is no part of the first row; invalid rows are reported by number, and left out."""
    rows = (
        b'\xef\xbb\xbf{"key": "k1", "scores": {"faithfulness": 1}, "at": 1e9}',
        b'{"key": "k2", "note": "\xff"}',
        b'{"key": "k3", "note": "\\ud83d"}',
        b"[" * 100_000,
        b'{"key": "k4", "at": NaN}',
        b'{"key": "k5", "at": 1e999}',
        b'{"key": "k6", "probability": 1e-200}',
        b'{"key": "\x1b[2J", "claims": ["\x1b[2J"]}',
    )
    file = tmp_path / "rows.jsonl"
    file.write_bytes(b"\n".join(rows))
    found = run(config, "--import", str(file))
    assert found.return_value == 1
    assert found.stderr.endswith("1 new, 0 replaced, 1 unmatched, 7 unreadable\n")
    assert [f":{number}: " in found.stderr for number in range(1, 9)] == [False, *[True] * 7]
    assert "\x1b" not in found.stderr
    (label,) = labels(config)
    assert label.key == "k1"
    assert label.at <= time.time()


def test_a_row_of_a_file() -> None:
    """A row may name its sample as the log does, and say what it knows."""
    row = {"source": "app", "id": "r1", "claims": ["supported", "contradicted"], "scores": {"answer_relevancy": 1}}
    found = label_record(row | {"probability": 0.5, "note": "n"}, "ann", 7.0, tuple(Quantity))
    assert found["key"] == a_draw("r1").key
    assert found["scores"] == {"faithfulness": 0.5, "contradiction": 0.5, "answer_relevancy": 1.0}
    assert (found["annotator"], found["at"], found["probability"], found["note"]) == ("ann", 7.0, 0.5, "n")


UNREADABLE = [
    ('{"key": "k", "scores": {"faithfullness": 1}}', "scores: 'faithfullness' is no quantity; use one of: faithful"),
    ('{"key": "k", "scores": {"polite_tone": 1}}', "scores: 'polite_tone' is no quantity"),
    ('{"key": "k", "scores": {"faithfulness": "good"}}', "scores.faithfulness: 'good' is no number"),
    ('{"key": "k", "scores": {"faithfulness": null}}', "scores.faithfulness: None is no number"),
    ('{"key": "k", "scores": [1]}', "scores: [1] is no JSON object"),
    ('{"key": "k", "claims": {}, "at": "noon"}', "claims: {} is no list"),
    ('{"key": "k", "claims": ["true"]}', "claims: 'true' is not known; use one of: supported"),
    ('{"key": "k", "claims": [{}]}', "claims: {} is not known"),
    ('{"key": "k", "at": "noon"}', "at: 'noon' is no number"),
    ('{"key": "k", "earlier": [7]}', "earlier: 7 is no JSON object"),
    ('{"key": "k", "without": 7}', "without: 7 is no JSON object"),
    ('{"key": "k", "note": "torn', "is not JSON: Unterminated string starting at character"),
    ('{"key": null, "scores": {"faithfulness": 1}}', "key: is missing"),
    ('{"id": "r1", "scores": {"faithfulness": 1}}', "names no answer; give its `key`, or `source` and `id`"),
    (f'{{"key": "k", "at": {"9" * 400}}}', "at: 9999999"),
]
"""A row of a file, and why it cannot be read."""


def test_an_unreadable_row_holds_up_no_other(config: Path, tmp_path: Path) -> None:
    """It is counted with its reason in words; the rows around it come in."""
    file = tmp_path / "rows.jsonl"
    good = '{"key": "k1", "scores": {"faithfulness": 1}}', '{"key": "k2", "note": null}'
    file.write_text("\n".join((good[0], *(row for row, _ in UNREADABLE), good[1])) + "\n")
    found = run(config, "--import", str(file))
    assert found.return_value == 1, found.exception
    for number, (_, reason) in enumerate(UNREADABLE, start=2):
        assert f":{number}: {reason}" in found.stderr
    assert "Error" not in found.stderr
    assert found.stderr.endswith(f"2 new, 0 replaced, 2 unmatched, {len(UNREADABLE)} unreadable\n")
    assert [(label.key, label.note) for label in labels(config)] == [("k1", ""), ("k2", "")]


def test_what_is_refused(config: Path) -> None:
    """A name that is not UTF-8, before anything is asked; a taken state where nobody answers; what is no address."""
    for option in ("--annotator", "--revoke"):
        assert f"{option} caf\udce9: is not UTF-8" in refused(run(config, option, "caf\udce9"))
    # Not the default port, at which a ragwatch may run on this machine.
    configured(config.parent, web={"listen": "127.0.0.1:9"})
    holder = SqliteStore(config.parent / "state")
    found = run(config, "--url", "http://127.0.0.1:9")
    assert "give the address of the running ragwatch with --url" in refused(found, RagwatchError)
    assert "http://127.0.0.1:9" in str(run(config).exception)
    assert refused(run(config, "--url", "file:///etc/passwd"))
    holder.close()


def test_nothing_to_label(config: Path, tmp_path: Path) -> None:
    """Once everything was labelled, that is said; where nothing was judged yet, that is."""
    run(config, "--count", "200", "--whole", said="f\n-\n-\n\n" * 60)
    assert "nothing to label" in run(config).output
    (tmp_path / "lonely").mkdir()
    lonely = configured(tmp_path / "lonely")
    assert "does not exist" in str(run(lonely).exception)
    SqliteStore(lonely.parent / "state").close()
    assert "has read nothing yet" in str(run(lonely).exception)


def test_a_log_does_not_command_the_terminal(tmp_path: Path) -> None:
    """Control characters in logged texts are shown as what they are; markup is text."""
    store = SqliteStore(tmp_path / "state")
    draw = a_draw("evil", answer=f"{ESCAPE}]0;owned [bold]Cats purr.", contexts=(f"a{ESCAPE}[2J",), at=BEGIN)
    store.admit(an_admission(draw))
    claim = a_claim((1,), text="Cats purr.", start=16, end=26)
    store.settle([a_verdict(draw, an_evidence(claim, relevant=(True,)))])
    store.close()
    found = run(configured(tmp_path), said="s\n-\n-\n\n")
    assert ESCAPE not in found.output
    assert "[bold]Cats purr." in found.output
    (text,) = underlined_claims("Some cats purr.", [{"text": "cats purr", "start": 5, "end": 14}])
    assert text.plain == "Some cats purr."


def full(asked: Asked) -> Reply:
    """A ragwatch that gives out a task and can keep nothing."""
    turns = [{"role": "user", "text": "Is it free?"}]
    sample = {"question": None, "contexts": [], "answer": "Yes.", "history": turns}
    body = {"tasks": [{"key": "k", "sample": sample, "claims": []}], "error": "the disk is full"}
    return 200 if asked.path.endswith("/tasks") else 503, body, {}


@pytest.mark.costly
def test_a_word_that_cannot_be_kept_is_not_lost(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the daemon cannot keep a word, it goes to a file that can be brought in later."""
    monkeypatch.chdir(config.parent)
    with answering(full) as (address, _):
        found = run(config, "--url", address, said="f\nf\nwell\n")
    assert "503: the disk is full\nthe last label is in ragwatch-labels.jsonl" in str(found.exception)
    assert "user before  Is it free?" in found.output
    assert "(not logged)" in found.output
    back = run(config, "--import", "ragwatch-labels.jsonl")
    assert back.stderr == "1 new, 0 replaced, 1 unmatched, 0 unreadable\n"
    assert [(word.scores[F], word.note) for word in labels(config)] == [(1.0, "well")]


def test_without_labels_it_is_said_how_to_label(config: Path) -> None:
    """Exit 3, the command and the page, and no empty table."""
    found = run(config, verb="calibrate")
    assert found.return_value == 3
    assert found.output.startswith("No label counts yet for an answer that ")
    assert "ragwatch label --annotator YOU --count 50, or the page http://127.0.0.1:" in found.output


@pytest.mark.parametrize(("option", "row", "stderr"), [
    ("--export", {}, ""),
    ("--import", {"annotator": "bob"}, "1 new, 0 replaced, 1 unmatched, 0 unreadable\n"),
    ("--import", {}, "1: annotator: is missing; add it\n0 new, 0 replaced, 0 unmatched, 1 unreadable\n"),
])  # fmt: skip
def test_labels_that_name_their_annotator_need_no_other(
    config: Path, option: str, row: dict[str, str], stderr: str
) -> None:
    """An export, and an import whose rows say who labelled."""
    path = config.parent / "labels.jsonl"
    path.write_text(json.dumps({"key": "k", "scores": {"faithfulness": 1.0}, **row}))
    found = command("label", "--config", config, option, path)
    assert (found.exception, found.stderr.endswith(stderr)) == (None, True)


def test_calibrate_wants_enough_labels(config: Path, tmp_path: Path) -> None:
    """Exit 3 and how many more are needed; the file holds the same report."""
    run(config, "--count", "5", "--whole", said="f\n-\n-\n\n" * 5)
    out = tmp_path / "report.json"
    found = run(config, "--out", str(out), verb="calibrate")
    assert found.return_value == 3
    assert "more needed" in found.output
    assert "Too few labels for a conclusion" in found.output
    assert json.loads(out.read_text())["quantities"]["faithfulness"]["labels"] == 5
    assert refused(run(config, "--judge", "x", verb="calibrate"))


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state with 150 labelled answers, 60 of which two people have labelled alike."""
    state = tmp_path_factory.mktemp("labelled") / "state"
    with closing(SqliteStore(state)) as store:
        world = World(store, Random(2), requests=500, begin=BEGIN)
        world.label(150)
        said = {
            key: ["supported" if each else "not_in_context" for each in claims] for key, claims in world.said.items()
        }
        records = [label.to_record() | {"claims": said[label.key]} for label in store.labels(0.0)]
        world.labelling().put([*records, *(record | {"annotator": "other"} for record in records[:60])])
    return state


@pytest.mark.costly
def test_calibrate_tells_of_the_judge(labelled: Path, tmp_path: Path) -> None:
    """With enough labels: agreement, kappa, rates by class, reliability, and the worst misses with their links."""
    shutil.copytree(labelled, tmp_path / "state")
    config = configured(tmp_path)
    found = run(config, "--json", verb="calibrate")
    assert found.return_value == 0, found.output
    report = json.loads(found.stdout)
    faithful = report["quantities"]["faithfulness"]
    assert faithful["labels"] == 150
    assert 0.1 < faithful["labelled"]["agreement"]["value"] < 0.9
    assert faithful["labelled"]["kappa"]["low"] < faithful["labelled"]["kappa"]["high"]
    assert faithful["worst"][0]["link"].endswith(f"/samples/{faithful['worst'][0]['key']}")
    claims = report["claims"]["labelled"]
    assert claims["sensitivity"]["supported"]["value"] == pytest.approx(0.7, abs=0.1)
    assert claims["specificity"]["supported"]["value"] == pytest.approx(0.95, abs=0.06)
    assert 0.0 < report["claims"]["calibration_error"] < 0.5
    assert report["people"]["agreement"]["value"] == 1.0
    shown = run(config, verb="calibrate").output
    for text in ("two annotators agree", "probability of support", "sensitivity", "/samples/"):
        assert text in shown


def test_calibrate_warns_of_a_judge_that_prefers_long_answers(tmp_path: Path) -> None:
    """Of 40 answers that people call right, the judge finds only the long ones right: a warning, and JSON says so."""
    store = SqliteStore(tmp_path / "state")
    draws = [a_draw(f"r{number}", answer="Cats purr. " * (number + 1)) for number in range(40)]
    store.admit(an_admission(*draws))
    read = [an_evidence((int(number > 15), 0)) for number in range(40)]
    store.settle([a_verdict(draw, evidence) for draw, evidence in zip(draws, read, strict=True)])
    store.add_labels([Label(draw.key, "ann", time.time(), {F: 1.0}) for draw in draws])
    store.close()
    config = configured(tmp_path)
    faithful = json.loads(run(config, "--json", verb="calibrate").stdout)["quantities"]["faithfulness"]
    assert faithful["length"]["matters"]
    assert faithful["length"]["correlation"]["low"] > 0.2
    shown = run(config, verb="calibrate").output
    assert "faithfulness: rank correlation of score and answer length at equal label 0.8" in shown
    assert "prefers long answers in faithfulness" in shown


@pytest.mark.costly
def test_calibrate_leaves_out_what_retention_has_picked_from(labelled: Path, tmp_path: Path) -> None:
    """Bad answers outlive good ones: of such a time they would be all that judge and people are compared on."""
    shutil.copytree(labelled, tmp_path / "state")
    with closing(SqliteStore(tmp_path / "state")) as store:
        store.prune(Retention(1, 90, 1 << 40), now=BEGIN + 86400.0 + 900.0)
        until = store.pruned_until()
        keys = {label.key for label in store.labels(0.0)}
        ages = [each.verdict.at > until for key in keys for each in store.find(Query(key=key))]
    assert {True, False} <= set(ages)
    config = configured(tmp_path)
    report = json.loads(run(config, "--json", verb="calibrate").stdout)
    assert report["quantities"]["faithfulness"]["labels"] == sum(ages)
    assert report["picked_until"] == until
    assert "only answers since" in run(config, verb="calibrate").output


def test_a_label_is_taken_back(config: Path) -> None:
    """By one annotator or by all; it is kept with the time, and where nothing counts that is said."""
    run(config, "--count", "1", "--whole", said="f\n-\n-\n\n")
    (label,) = labels(config)
    wrong = run(config, "--revoke", label.key, "--annotator", "bob")
    assert (wrong.return_value, wrong.stderr) == (1, f"{label.key}: no label of bob counts there\n")
    found = command("label", "--config", config, "--revoke", label.key)
    assert (found.return_value, found.stderr) == (0, "1 label taken back\n")
    (revoked,) = labels(config)
    assert revoked.revoked is not None
    assert revoked.scores == label.scores
    nobody = command("label", "--config", config)
    assert "--annotator: is missing" in str(nobody.exception)
