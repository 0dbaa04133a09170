"""Pages that are written from the program say what it has: commands, keys, series, rules, metrics, figures."""

import inspect
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.patience import DEADLINE

from ragwatch.commands import GROUPS, cli
from ragwatch.commands.demo import KEYS
from ragwatch.formats import NAMES
from ragwatch.judges import KINDS
from ragwatch.model.quantities import Quantity, ReferenceQuantity
from ragwatch.model.stages import Stage
from ragwatch.redaction.rules import RULES
from ragwatch.terminal.options import Arguments, import_function
from ragwatch.terminal.options.administration import LLM_JUDGES
from ragwatch.terminal.options.offline import FORMATS, JUDGES
from tools.cookbook import table
from tools.manual import manual
from tools.parquet_columns import with_table
from tools.readme import LOGS, PARQUET, REFERENCE, SETUP, logs_page
from tools.reference import commands_of, reference

ROOT = Path(__file__).parents[2]


def test_reference_is_written_from_the_program() -> None:
    """Run `tools/readme.py` where this fails."""
    assert REFERENCE.read_text(encoding="utf-8") == reference()


def test_the_columns_of_exported_files_are_those_of_the_program() -> None:
    """Run `tools/readme.py` where this fails."""
    page = PARQUET.read_text(encoding="utf-8")
    assert page == with_table(page)
    assert "| `claims[].verdict` | string |" in page


def test_reference_has_what_people_look_for() -> None:
    """A command with its options, keys of lists and of mappings, and a series."""
    page = reference()
    for text in (
        "### ragwatch forget",
        "| `--url URL` |",
        "| `web.tokens[].rights` | required |",
        "| `alerts.slos.NAME.objective` | required |",
        "| `store.texts` (`kind: sqlite`) | `all` |",
        "`ragwatch_web_config_failures_total`",
    ):
        assert text in page


def test_the_pages_of_logs_are_current() -> None:
    """Run `tools/readme.py` where this fails."""
    page, brief = LOGS.read_text(encoding="utf-8"), SETUP.read_text(encoding="utf-8")
    assert page == logs_page(page)
    assert table(brief=True) in brief


TEXT = manual()


def test_every_command_and_option_is_in_it() -> None:
    """Each command has a section of its own, with a paragraph for each option under all of its names."""
    sections = {section.partition("\n")[0]: section for section in TEXT.split('.SS "')[1:]}
    missing = []
    for path, command in commands_of(cli, ("ragwatch",)):
        words = " ".join(path).replace("-", "\\-")
        own = [section for usage, section in sections.items() if usage.startswith((f"{words} ", f'{words}"'))]
        if len(own) != 1:
            missing.append(words)
            continue
        names = [name.replace("-", "\\-") for option in command.params for name in option.opts if name.startswith("-")]
        missing += [f"{words} {name}" for name in names if f".B {name}" not in own[0] and f", {name}" not in own[0]]
    assert missing == []


@pytest.mark.skipif(shutil.which("groff") is None, reason="needs groff")
def test_the_formatter_warns_of_nothing() -> None:
    """Every request and every escape is known to groff, and no line starts one by accident."""
    warnings = [f"-w{kind}" for kind in ("char", "escape", "input", "mac", "missing", "scale", "syntax")]
    words = ["groff", "-man", *warnings, "-Wbreak", "-Tutf8", "-z"]
    done = subprocess.run(words, input=TEXT, capture_output=True, text=True, check=True)
    assert done.stderr == ""


METRICS = ROOT / "docs" / "metrics.md"


def test_the_page_of_metrics_has_them_all() -> None:
    """Each stands in the row of the stage that the gate names when it fails, and in no other."""
    text, metrics = METRICS.read_text(encoding="utf-8"), (*Quantity, *ReferenceQuantity)
    assert [metric for metric in metrics if f"`{metric}`" not in text] == []
    for stage in set(Stage) - {Stage.NONE}:
        (row,) = re.findall(rf"(?m)^\| {stage} \|([^|]*)", text)
        assert {name.strip(" `") for name in row.split(",")} == {str(one) for one in metrics if one.row.stage is stage}


REDACTION = ROOT / "docs" / "redaction.md"


def test_table_lists_every_rule() -> None:
    """One row a rule, in the order in which they are tried. A failure shows the rows to write."""
    rows = [f"| `{rule.name}` | {rule.kind} | {rule.about} |" for rule in RULES]
    text = REDACTION.read_text(encoding="utf-8")
    written = [line for line in text.splitlines() if line.startswith("| `")]
    assert written == rows


BENCH = ROOT / "docs" / "bench_peers.md"
PARTS = ("judges", "embedded", "tail", "drift", "scrape")
TOOLS = {
    "ragas": ("ragas", "ragas"),
    "deepeval": ("deepeval", "deepeval"),
    "TruLens": ("trulens", "trulens-core"),
    "phoenix-evals": ("phoenix", "arize-phoenix-evals"),
}


def test_the_page_of_peers_has_tables_charts_and_versions() -> None:
    """Between the marks of a part stands a table, beside its chart; versions are those of the locks."""
    text = BENCH.read_text(encoding="utf-8")
    for part in PARTS:
        assert re.search(rf"(?s)<!-- {part} -->\n\| .*?\n<!-- /{part} -->", text), part
        assert f"(bench_peers_{part}.svg)" in text
    for tool, (lock, package) in TOOLS.items():
        pinned = re.findall(rf"(?m)^{package}==(\S+)", (ROOT / "bench" / "peers" / f"{lock}.lock").read_text())
        assert [f"| {tool} {version} |" in text for version in pinned] == [True], tool


CARD = (ROOT / "training" / "LOCAL.md").read_text(encoding="utf-8")
EVERY_ROW = "| all rows: AttributionBench test / FEVER-symmetric test / WiCE test |"
SETS = re.compile(r"(?m)^\| ([^|]+) \| (\.\d{3}) \| \.\d{3} \| (\.\d{3}) \| [^|]+ \| [^|]+ \|$")
"""Rows of the card's table: set, AUROC of words, of the run before, of the newest run."""


def text_of(name: str) -> str:
    """A page on one line, so that a figure may stand at the end of a line."""
    return " ".join((ROOT / name).read_text(encoding="utf-8").split())


def of_card(row: str) -> list[list[str]]:
    """Figures of a row of the card by column: words, the run before, the newest run; without their intervals."""
    line = next(line for line in CARD.splitlines() if line.startswith(row))
    return [re.findall(r"\.\d{3}", re.sub(r"\[.*?\]", "", column)) for column in line.split("|")[2:5]]


def rounded(figure: str) -> str:
    """Two digits of a share.

    >>> rounded(".726")
    '.73'
    """
    return f"{float(figure):.2f}".removeprefix("0")


def test_agreement_with_people_is_that_of_the_card() -> None:
    """docs/judges.md rounds the card's figures for whole sets."""
    words, _, newest = of_card(EVERY_ROW)
    for name, lexical, local in zip(("AttributionBench", "FEVER-symmetric", "WiCE"), words, newest, strict=True):
        assert f"{rounded(local)} against {rounded(lexical)} ({name})" in text_of("docs/judges.md")
    (lexical,), _, (local,) = of_card("| ExpertQA whole answers (claims taught) |")
    assert f"{rounded(local)} against {rounded(lexical)}" in text_of("docs/judges.md")


def test_the_bench_shows_the_card() -> None:
    """Its table of agreement has every set of the card, and no other figure."""
    rows = [f"| {name} | {words} | {now} |" for name, words, now in SETS.findall(CARD)]
    table = re.search(
        r"(?s)\| set \| ragwatch lexical, AUROC .*?(?=\n<!--)", (ROOT / "docs/bench_peers.md").read_text()
    )
    assert table is not None
    assert len(rows) >= 8
    assert table[0].splitlines()[2:] == rows


def test_the_model_is_as_large_as_pages_say() -> None:
    """Megabytes of its graph, which the wheel of the model brings."""
    graph = ROOT / "reader" / "ragwatch_reader" / "model" / "reader.onnx"
    for name in ("training/LOCAL.md", "docs/judges.md", "reader/README.md"):
        assert f"{graph.stat().st_size / 1e6:.1f} MB" in text_of(name), name


def test_overviews_repeat_no_agreement() -> None:
    """They lead to the cards, whose figures change with each judge."""
    for name in ("README.md", "docs/comparison.md", "docs/faq.md"):
        assert not re.search(r"AUROC|\bF1 of \.", text_of(name)), name


HEAVY = {
    *("pydantic", "rich", "starlette", "uvicorn", "prometheus_client", "apscheduler", "jinja2", "httpx"),
    *("anthropic", "yaml", "structlog", "orjson", "sqlite3", "asyncio", "numpy"),
}
COUNT = (
    "import sys; sys.argv = ['ragwatch', *sys.argv[1:]]\n"
    "from ragwatch.__main__ import main\n"
    "try: main()\n"
    "except SystemExit as ended: assert not ended.code, ended\n"
    "print(*sys.modules, file=sys.stderr)\n"
)


@pytest.mark.costly
@pytest.mark.parametrize("words", [[], ["run"], ["gate"], ["plan"], ["canary", "suggest"]], ids=" ".join)
def test_help_imports_no_library_that_does_work(words: list[str]) -> None:
    """It costs a tenth of a second instead of more than one."""
    found = subprocess.run(
        [sys.executable, "-c", COUNT, *words, "--help"],
        env={name: value for name, value in os.environ.items() if not name.startswith("COV")},  # it imports sqlite3
        capture_output=True,
        text=True,
        check=True,
        timeout=DEADLINE,
    )
    assert "Usage: " in found.stdout
    names = {name.partition(".")[0] for name in found.stderr.split()}
    assert names & HEAVY == set()


def test_every_command_is_in_a_group_of_the_help() -> None:
    """A command without a heading would be listed nowhere."""
    assert set(cli.commands) == {command.name for commands in GROUPS.values() for command in commands}


@pytest.mark.parametrize("arguments", Arguments.__subclasses__(), ids=lambda arguments: arguments.__name__)
def test_a_command_is_what_its_options_say(arguments: type[Arguments]) -> None:
    """The function that is imported later takes the class that declares the options, and each of them is explained."""
    (taken,) = inspect.signature(import_function(arguments.work)).parameters.values()
    assert taken.annotation in (arguments, arguments.__name__)  # the second where annotations are deferred
    assert all(getattr(each, "help", "") for each in arguments.parameters() if each.param_type_name == "option")
    assert arguments.__doc__


def test_choices_are_those_of_the_registries() -> None:
    """What help offers without importing it is what there is."""
    assert set(JUDGES) == set(KINDS)
    assert NAMES == FORMATS
    assert set(LLM_JUDGES) == set(KEYS)
