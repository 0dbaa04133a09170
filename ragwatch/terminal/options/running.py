"""Options and help of the commands that set up and run ragwatch: init, check, run, demo."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import click

from ragwatch.terminal.options.lazy import CONFIG, CONFIG_FILE, INPUT, OUT, Arguments, FiniteRange, argument, option

LLM_JUDGES = ("claude", "openai")


class InitArguments(Arguments, work="ragwatch.commands.setup.init:init"):
    """Write a configuration for the log files of a service, test it, and print the scrape job for Prometheus.

    Looks at the first records of each LOG (JSONL, gzip too), and asks what they do not tell: which field is the answer,
    where the state is kept, how many answers the service gives in a day, which judge reads them. The judges are listed
    with what each knows and costs for these logs. A file that exists is not overwritten. Exit code 1 when the logs
    cannot be read, or a test of the configuration failed, 3 when they are probably read wrongly.

    With --print, only the keys of a source that reads the logs are printed (`-` is standard input), with the number of
    records that they read, errors, and the first samples as they are read. Several files may hold parts of the same
    requests, which share an id. Lines that are no answers, text before the JSON, and passages inside a prompt are
    recognised too. Exit code 1 when a part of the samples is missing or has to be decided: the output is then a draft,
    with the likely fields and a value of each. Exit code 3 when the records are probably read wrongly: contexts that
    are names of documents or a prompt, an id that repeats, and the like.
    """

    logs: Sequence[Path] = argument(
        type=click.Path(path_type=Path, exists=True, dir_okay=False, allow_dash=True), metavar="[LOG]..."
    )
    receive: str | None = option(
        type=click.Choice(["push", "otlp"]),
        help="Instead of a log: the service sends its answers, as JSON or as traces.",
    )
    out: Path = option(type=OUT, default="ragwatch.yaml", help="File to write; - to print it only.")
    state: Path | None = option(type=CONFIG, help="Directory for the state; default: ask for it.")
    judge: str | None = option(
        type=click.Choice(["lexical", "local", "detector", "claude"]),
        help="The judge; default: ask for it, and without asking a free one.",
    )
    yes: bool = option(help="Ask nothing and take the defaults.")
    only_print: bool = option("--print", help="Only print how the logs are read, and write nothing.")


class DetectorFetchArguments(Arguments, work="ragwatch.commands.detector:fetch"):
    """Download a model for judges of kind `detector` (see docs/judges.md) into the directory DIR.

    MODEL is its owner and name on the hub. The licence is printed first; every file is checked by its hash. Only data
    is taken: an ONNX graph or safetensors, the tokenizer and the model card. A download that was cut short is repeated
    by the same command, which keeps the files that are whole. ragwatch itself downloads nothing when it runs.
    """

    model: str = argument(metavar="MODEL")
    folder: Path = argument(type=click.Path(path_type=Path, file_okay=False), metavar="DIR")
    revision: str = option(default="main", help="Branch, tag or commit.")
    names: Sequence[str] = option("--file", metavar="NAME", help="A file to take, instead of what a judge needs.")
    hashes: Path | None = option(type=INPUT, help="SHA-256 of files, as sha256sum writes them, instead of the hub's.")
    hub: str = option(default="https://huggingface.co", help="Address of the hub, or of a mirror.")
    hosts: Sequence[str] = option("--host", metavar="HOST", help="Another host to which the hub may redirect.")
    max_mb: int = option(default=4000, type=click.IntRange(1), help="Maximum size of a file, in megabytes.")


class MapArguments(Arguments, work="ragwatch.commands.setup.map:map_log"):
    """The former name of `ragwatch init --print`; the next release drops it."""

    files: Sequence[BinaryIO] = argument(required=True, type=click.File("rb"))


class CheckArguments(Arguments, work="ragwatch.commands.checking.check:check"):
    """Validate a configuration and test what it refers to: files, records, judges, canary endpoints, address.

    Nothing is stored and no cursor advances. The first samples of each source are shown as they are read. Exit code 1
    when a test failed, 2 when the configuration is invalid, 3 when records are read, but probably wrongly.
    """

    path: Path = CONFIG_FILE


class RunArguments(Arguments, work="ragwatch.commands.run:run"):
    """Watch the configured sources and serve /metrics until SIGTERM.

    SIGTERM drains and exits with 0, a second one exits immediately; SIGHUP reloads the configuration.

    With --once, files are read from the beginning, whatever `start` says, and the state is a temporary directory that
    is removed at the end: the configured state is not used, and the budgets of the judges start unused. Exit code 1
    when no record of a source could be read or a directory is missing, 3 when there was nothing to read.
    """

    path: Path = CONFIG_FILE
    once: bool = option(help="Read and judge the existing records, print /metrics text and exit.")
    state: Path | None = option(
        type=CONFIG, help="With --once: keep the state in this directory, and continue from it next time."
    )


class DemoArguments(
    Arguments,
    work="ragwatch.commands.demo:demo",
    first_line="starting the demo: a small RAG service, monitored by ragwatch ...",
):
    """Monitor a small RAG service over the docstrings of the Python library; judges every answer, without an API key.

    With --degrade-after the service gets three faults, one after another: documents disappear from its index, it
    invents facts, it ignores the top-ranked passage. Each is announced, and the stage at fault is shown.

    With --judge claude or openai an LLM also judges a part of the answers, mostly those that the embedded judge is
    unsure of, for at most one dollar per hour. The API key is read from ANTHROPIC_API_KEY or OPENAI_API_KEY.
    """

    port: int = option(default=10477, help="Port of ragwatch; 0 for any free port.")
    seconds: float | None = option(type=FiniteRange(min=1), help="Stop after this many seconds; default: on Ctrl-C.")
    degrade_after: float | None = option(
        type=FiniteRange(min=1), help="Break the service on purpose after this many seconds."
    )
    breakage_seconds: float = option(default=20.0, type=FiniteRange(min=1), help="Duration of each fault.")
    rate: float = option(default=8.0, type=FiniteRange(min=0.1, max=200), help="Questions per second.")
    chunk_words: int = option(
        default=110,
        type=click.IntRange(10, 1000),
        help="Size of the chunks that the service splits its documents into, in words.",
    )
    kind: str | None = option(
        "--judge", type=click.Choice(LLM_JUDGES), help="LLM judge to use besides the embedded judge."
    )
    base_url: str | None = option(help="Base URL of the API of that judge; default: that of its provider.")
    model: str | None = option(help="Model of that judge; required for openai.")
