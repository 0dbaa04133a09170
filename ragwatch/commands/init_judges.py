"""The judges that `ragwatch init` offers: one row for each, with what it knows, what it needs, and what it costs."""

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from statistics import fmean

import click

from ragwatch.errors import ConfigError
from ragwatch.judges.claude import Options as ClaudeOptions
from ragwatch.judges.detector.artefact import CONFIG
from ragwatch.judges.llm.judge import price_of_reading
from ragwatch.judges.llm.options import known_model
from ragwatch.model.sample import Sample

_SHARE, _UNSURE_SHARE, _USD_PER_DAY = 0.05, 0.4, 5.0  # 5 and 40 % in texts
_MODEL: str = ClaudeOptions().model
_EXAMPLES = 20
"""Answers of which the price is computed."""


@dataclass(frozen=True, slots=True)
class JudgeRow:
    """A judge that is offered."""

    name: str  # its name in the menu and for `--judge`
    knows: str  # what it sees and what it does not
    needs: Callable[[], str]  # what is missing here; empty if it can be used
    price: Callable[[Sequence[Sample], float], str]  # what it costs, by some answers and how many are judged in a day
    items: Callable[[], tuple[tuple[str, ...], ...]]  # the judges of the configuration, each as lines of YAML


def _embedded(kind: str, *more: str) -> tuple[str, ...]:
    return "name: embedded", f"kind: {kind}", *more


def _lacks_reader() -> str:
    return "" if find_spec("ragwatch_reader") else "pip install 'ragwatch-exporter[local]'"


def _lacks_detector() -> str:
    is_installed = all(map(find_spec, ("onnxruntime", "tokenizers", "numpy")))
    steps = [] if is_installed else ["pip install 'ragwatch-exporter[detector]'"]
    steps += [] if (_detector() / CONFIG).is_file() else [f"ragwatch detector fetch OWNER/MODEL ./{_detector().name}"]
    return ", then ".join(steps)


def _detector() -> Path:
    """The folder of the model."""
    return Path.cwd() / "model"


def _usd(dollars: float) -> str:
    return "less than $0.01" if dollars < 0.01 else f"${dollars:.2f}"


def _price_of_claude(samples: Sequence[Sample], judged_per_day: float) -> str:
    known, bound = known_model(_MODEL), f"never more than ${_USD_PER_DAY:g} a day"
    prices = [] if known is None else [price_of_reading(known.prices, one) for one in samples[:_EXAMPLES]]
    if not prices:
        return f"price by the length of answers and contexts, {bound}"
    price = fmean(prices)
    low, high = (share * judged_per_day * price for share in (_SHARE, _UNSURE_SHARE))
    return (
        f"at most about ${1000 * price:.2f} per 1,000 answers by {_MODEL}; 5 % of the judged answers = "
        f"{_usd(low)} a day, up to 40 % where words are unsure = {_usd(high)}, {bound}"
    )


ROWS = (
    JudgeRow(
        "lexical",
        "compares words: inventions and wrong passages, not swapped names; levels in English, changes in 13 languages",
        needs=lambda: "",
        price=lambda *_: "free, at once",
        items=lambda: (_embedded("lexical"),),
    ),
    JudgeRow(
        "local",
        "words, then a small model of this machine: some swapped names, numbers and negations too; English",
        needs=_lacks_reader,
        price=lambda *_: "free; some 12 times the CPU of words, 170 MB of memory",
        items=lambda: (_embedded("local"),),
    ),
    JudgeRow(
        "detector",
        "words, then a public model of your choice; how good it is on this log is unknown until answers have labels",
        needs=_lacks_detector,
        price=lambda *_: "free; the CPU and memory of its model",
        items=lambda: (_embedded("detector", f"model: {json.dumps(str(_detector()), ensure_ascii=False)}"),),
    ),
    JudgeRow(
        "claude",
        "words, and Claude for a part: meaning, in any language, and whether the question is answered",
        needs=lambda: "" if os.environ.get("ANTHROPIC_API_KEY") else "the environment variable ANTHROPIC_API_KEY",
        price=_price_of_claude,
        items=lambda: (
            _embedded("lexical"),
            (
                "name: claude",
                "kind: claude",
                "follows: embedded # reads 5 % of what that judge reads, up to 40 % where that is unsure",
                f"probability: {_SHARE}",
                f"unsure_probability: {_UNSURE_SHARE}",
                f"budget: {{usd_per_day: {_USD_PER_DAY}}}",
                "api_key: ${ANTHROPIC_API_KEY}",
            ),
        ),
    ),
)
NAMES = tuple(row.name for row in ROWS)


def default_judge() -> str:
    """The judge that is taken where nobody is asked: the best one that is installed and free."""
    return "lexical" if _lacks_reader() else "local"


def judge_named(name: str) -> JudgeRow:
    """Return the judge of a name of `NAMES`. Raises `ConfigError` if it cannot be used here."""
    row = next(row for row in ROWS if row.name == name)
    if needs := row.needs():
        raise ConfigError(f"--judge {name}: needs {needs}; or name another judge")
    return row


def ask_for_judge(samples: Sequence[Sample], judged_per_day: float) -> JudgeRow:
    """Show what each judge knows and costs for such answers, and ask for one of those that can be used here."""
    click.echo("Which judge reads the answers?")
    usable = []
    for row in ROWS:
        needs = row.needs()
        usable += [] if needs else [row.name]
        click.echo(f"  {row.name:8} {row.knows}")
        click.echo(f"  {'':8} {row.price(samples, judged_per_day)}{f'; needs {needs}' if needs else ''}")
    return judge_named(click.prompt("Judge", type=click.Choice(usable), default=default_judge()))
