"""What the documents speak of exists: series, commands and their flags, make targets, keys, files and links."""

import re
import runpy
import shlex
import textwrap
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from ragwatch.commands import cli
from ragwatch.config import parse
from ragwatch.config.model import Settings
from ragwatch.exporter.catalogue import CATALOGUE, MetricType
from ragwatch.sources import KINDS
from tools.reference import keys

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    ROOT / "config.example.yaml",
    *(each for room in ("docs", "deploy", "training") for each in sorted((ROOT / room).rglob("*.md"))),
    *sorted(each for each in (ROOT / "deploy").rglob("*") if each.suffix in {".yaml", ".service"} or not each.suffix),
]
TEXTS = {each: each.read_text(encoding="utf-8") for each in PAGES if each.is_file()}
CASE = re.compile(r"(?m)^(?:async )?def (test_\w+)")
IMAGES = {"grafana/grafana"}
ROOMS = "bench|deploy|docs|grafana|ragwatch|tests|tools|training"
NEEDED: dict[str, Any] = {"sources": [{"kind": "tail", "name": "app", "path": "/var/log/x"}]}


def told(page: Path) -> str:
    """A path as people write it."""
    return page.relative_to(ROOT).as_posix()


def wrong(pattern: str, is_right: Callable[[Path, str], object]) -> list[str]:
    """What a pattern finds on all pages and is not right, with its page."""
    return [
        f"{told(page)}: {found}"
        for page, text in TEXTS.items()
        for found in dict.fromkeys(re.findall(pattern, text))
        if not is_right(page, found)
    ]


def test_series_exist() -> None:
    """Every name of a series is in the catalogue; a star stands for several, Q for a quantity."""
    known = {"ragwatch_views", *(row.name for row in CATALOGUE)}  # the schema of views has a name like a series
    known |= {
        f"{row.name}_{end}"
        for row in CATALOGUE
        if row.kind is MetricType.HISTOGRAM
        for end in ("bucket", "count", "sum")
    }
    known |= {row.name.replace("faithfulness", "Q") for row in CATALOGUE}

    def exists(_: Path, name: str) -> bool:
        start = name.removesuffix("*")
        return name in known or (name != start and any(each.startswith(start) for each in known))

    assert wrong(r"(?<![\w:./$-])ragwatch_[A-Za-z0-9_]+(?![A-Za-z0-9_(])\*?", exists) == []


def commands(text: str) -> Iterator[list[str]]:
    """Words of every `ragwatch ...` in code: between backticks, or a line of a block."""
    spans = [" ".join(each.split()) for each in re.findall(r"`ragwatch ([^`]+)`", text)]
    fenced = "".join(re.findall(r"(?ms)^```\w*\n(.*?)^```", text))
    lines = re.findall(r"(?m)^(?: {4,}.*)?ragwatch ([a-z]+ [^#\n]*)", fenced)
    for each in (*spans, *lines):
        yield shlex.split(each.replace("[", " ").replace("]", " ").replace("\\|", " ").replace("'", ""), comments=True)


def test_commands_and_their_flags_exist() -> None:
    """A verb that is told of is one of ours, and so is every flag behind it."""
    for page, words in ((page, words) for page, text in TEXTS.items() for words in commands(text)):
        verb, *rest = words
        assert verb in cli.commands, (page, words)
        found: Any = cli.commands[verb]
        if isinstance(found, click.Group) and rest and rest[0] in found.commands:
            found = found.commands[rest[0]]
        flags = {name for each in found.params for name in (*each.opts, *each.secondary_opts)} | {"--help"}
        assert {each.partition("=")[0] for each in rest if each.startswith("--")} <= flags, (page, words)


def test_make_targets_exist() -> None:
    """`make X` is a target of the Makefile."""
    targets = set(re.findall(r"(?m)^([a-z][a-z-]*):", (ROOT / "Makefile").read_text()))
    assert wrong(r"(?m)(?:`|^ {4})make ([a-z][a-z-]*)", lambda _, name: name in targets) == []


def test_configuration_keys_exist() -> None:
    """A dotted key whose first part is a section of the configuration is one that can be set."""
    words = [re.sub(r"\[\]|\.NAME", "", key.path).split(".") for key in keys()]
    known = {".".join(each[: end + 1]) for each in words for end in range(len(each))}

    def exists(_: Path, name: str) -> bool:
        is_ours = name.partition(".")[0] in {*Settings.model_fields, "store"}
        return name in known or not is_ours or name.endswith(".py")

    assert wrong(r"`([a-z_]+(?:\.[a-z_]+)+)`", exists) == []


def test_every_page_is_in_the_navigation_of_the_site() -> None:
    """Pages of docs/, runbooks and what they link to are on the site that `make docs` builds, each once."""
    pages = [page for group in runpy.run_path(str(ROOT / "docs" / "conf.py"))["NAVIGATION"].values() for page in group]
    assert len(pages) == len(set(pages))
    documents = {*(ROOT / "docs").glob("*.md"), *(ROOT / "deploy" / "runbooks").glob("*.md")}
    for page in [ROOT / f"{page}.md" for page in pages]:
        documents |= {(page.parent / link).resolve() for link in re.findall(r"\]\(([^):#\s]+\.md)", page.read_text())}
    assert {told(page).removesuffix(".md") for page in documents} <= {*pages, "README"}


def anchors(page: Path) -> set[str]:
    """Names under which the headings of a page can be linked to, as GitHub makes them."""
    headings = re.findall(r"(?m)^#+ (.+)$", page.read_text())
    return {re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in headings}


def test_headings_skip_no_level() -> None:
    """The site that `make docs` builds refuses a heading of the third level after one of the first."""
    for page in (each for each in TEXTS if each.suffix == ".md"):
        text = re.sub(r"(?ms)^```.*?^```$", "", TEXTS[page])
        levels = [len(marks) for marks in re.findall(r"(?m)^(#+) ", text)]
        assert all(later <= earlier + 1 for earlier, later in pairwise(levels)), page


def test_links_lead_somewhere() -> None:
    """Links within the repository lead to a file or a folder that is there, and to a heading that it has."""

    def leads(page: Path, link: str) -> bool:
        file, _, anchor = link.partition("#")
        place = (page.parent / file).resolve() if file else page
        is_elsewhere = page.suffix != ".md" or re.match(r"[a-z]+:", link)
        return bool(is_elsewhere) or (place.exists() and (not anchor or anchor in anchors(place)))

    assert wrong(r"\]\(([^)\s]+)\)", leads) == []


def test_files_that_are_named_are_there() -> None:
    """A path that begins with a room of the repository exists."""

    def is_there(page: Path, name: str) -> bool:
        is_named = not re.search(r"[*{}]", name) and name not in IMAGES
        return not is_named or (ROOT / name).exists() or (page.parent / name).exists()

    assert wrong(rf"(?<![\w/.-])(?:{ROOMS})/[\w./*{{}},-]*\w", is_there) == []


def test_the_tail_is_tested_as_often_as_is_said() -> None:
    """The number of named cases in docs/figures.md is no more than there are."""
    said = re.search(r"over (\d+) named cases", (ROOT / "docs" / "figures.md").read_text())
    assert said is not None
    cases = [
        name for each in (ROOT / "tests/unit/sources").glob("test_tail*.py") for name in CASE.findall(each.read_text())
    ]
    assert len(cases) > int(said[1])


def test_every_room_of_the_house_is_told_of() -> None:
    """The table of docs/architecture.md names every folder and file of the package, and no other."""
    house = (ROOT / "docs" / "architecture.md").read_text().partition("\n## Packages\n")[2]
    told = {name for line in re.findall(r"(?m)^\| (`.*?) \|", house) for name in re.findall(r"`([\w.]+/?)`", line)}
    rooms = {f"{each.name}/" for each in (ROOT / "ragwatch").iterdir() if (each / "__init__.py").is_file()}
    files = {each.name for each in (ROOT / "ragwatch").glob("*.py") if not each.stem.startswith("__")}
    assert told == rooms | files


def blocks(text: str) -> Iterator[str]:
    """Indented paragraphs that begin with a key of the configuration."""
    sections = "|".join(("sources", "judges", "canaries", *Settings.model_fields))
    for found in re.findall(r"(?m)(?:^ {4,}\S.*\n)+", text):
        shown = textwrap.dedent(found)
        if re.match(rf"(?:{sections}):", shown):
            yield shown


def test_configurations_of_pages_are_valid(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each block, put into a minimal configuration, is one that starts."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "a key")
    pages = ("README.md", "docs/setup.md", "docs/judges.md", "docs/canaries.md", "docs/brokers.md")
    found = [yaml.safe_load(each) for page in pages for each in blocks((ROOT / page).read_text())]
    assert len(found) == 7
    for each in found:
        parse({**NEEDED, **each}, folder=tmp_path)


def test_what_the_example_shows_as_comments_is_valid(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Sources, judges and canaries that stand there to be taken over can be."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "a key")
    text = (ROOT / "config.example.yaml").read_text()
    items = re.findall(r"(?m)^# (?:- .*\n)(?:#   .*\n)+", text)
    shown = [each for item in items for each in yaml.safe_load(re.sub(r"(?m)^# ", "", item))]
    brokers = [{**each, "name": each["kind"]} for each in shown if each.get("kind") in KINDS]
    judges = [each for each in shown if "name" in each and each["kind"] not in KINDS]
    suites = [{key: each[key] for key in each if key != "file"} for each in shown if "suite" in each]
    assert (len(brokers), len(judges), len(suites)) == (1, 1, 1)
    judges.insert(0, {"name": "embedded", "kind": "lexical"})
    config = parse({**NEEDED, "sources": brokers, "judges": judges, "canaries": suites}, folder=tmp_path)
    assert [source.kind for source in config.sources] == [each["kind"] for each in brokers]
    assert len(config.canaries[0].canaries) == 2
