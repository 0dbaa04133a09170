"""Options and help of the commands that set up, run and administer ragwatch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import click

from ragwatch.terminal.options import (
    CONFIG,
    CONFIG_FILE,
    FOLDER,
    INPUT,
    OUT,
    TOKEN_FILE,
    URL,
    Arguments,
    FiniteRange,
    IntegerRange,
    argument,
    option,
)

LLM_JUDGES = ("claude", "openai")


class InitArguments(Arguments, work="ragwatch.commands.init:init"):
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
    folder: Path = argument(type=FOLDER, metavar="DIR")
    revision: str = option(default="main", help="Branch, tag or commit.")
    names: Sequence[str] = option("--file", metavar="NAME", help="A file to take, instead of what a judge needs.")
    hashes: Path | None = option(type=INPUT, help="SHA-256 of files, as sha256sum writes them, instead of the hub's.")
    hub: str = option(default="https://huggingface.co", help="Address of the hub, or of a mirror.")
    hosts: Sequence[str] = option("--host", metavar="HOST", help="Another host to which the hub may redirect.")
    max_mb: int = option(default=4000, type=IntegerRange(1), help="Maximum size of a file, in megabytes.")


class DetectorQuantiseArguments(Arguments, work="ragwatch.commands.detector:quantise"):
    """Write the detector in DIR with an int8 graph into the new directory OUT, a quarter of the size.

    Both graphs read 16 built-in texts; where their probabilities differ too much, nothing is written. Measure
    its quality with labels: `ragwatch estimate`. Needs the extra `quantise`; takes from seconds to some minutes.
    """

    folder: Path = argument(type=click.Path(path_type=Path, exists=True, file_okay=False), metavar="DIR")
    out: Path = argument(type=FOLDER, metavar="OUT")
    family: str | None = option(metavar="NAME", help="What the model reads; default: what its config.json shows.")
    graph: str | None = option(metavar="NAME", help="Name of the graph in DIR; default: model.onnx or onnx/model.onnx.")
    tolerance: float = option(type=FiniteRange(0, 1), default=0.05, help="Maximum mean difference of probabilities.")
    force: bool = option(help="Replace OUT if this command wrote it.")


class MapArguments(Arguments, work="ragwatch.commands.map:map_log"):
    """The former name of `ragwatch init --print`; the next release drops it."""

    files: Sequence[BinaryIO] = argument(required=True, type=click.File("rb"))


class CheckArguments(Arguments, work="ragwatch.commands.check:check"):
    """Validate a configuration and test what it refers to: files, records, judges, canary endpoints, address.

    Failures come first, then warnings, then what is fine. Nothing is stored and no cursor advances. The first samples
    of each source are shown as they are read. Exit code 1 when a test failed, 2 when the configuration is invalid, 3
    when records are read, but probably wrongly.
    """

    path: Path = CONFIG_FILE
    every: bool = option("--all", help="Give each limit of the alerts its own line, with the key that changes it.")


class RunArguments(Arguments, work="ragwatch.commands.run:run"):
    """Watch the configured sources and serve /metrics until SIGTERM.

    SIGTERM drains and exits with 0, a second one exits immediately; SIGHUP reloads the configuration.

    With --once, files are read from the beginning, whatever `start` says, and the state is a temporary directory that
    is removed at the end: the configured state is not used, and the budgets of the judges start unused. Exit code 1
    when no record of a source could be read, a directory is missing or a judge did not answer, 3 when there was
    nothing to read.
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
        type=IntegerRange(10, 1000),
        help="Size of the chunks that the service splits its documents into, in words.",
    )
    kind: str | None = option(
        "--judge", type=click.Choice(LLM_JUDGES), help="LLM judge to use besides the embedded judge."
    )
    base_url: str | None = option(help="Base URL of the API of that judge; default: that of its provider.")
    model: str | None = option(help="Model of that judge; required for openai.")


class StoreCopyArguments(Arguments, work="ragwatch.commands.administration:copy"):
    """Copy the SQLite state in the directory SOURCE to the empty PostgreSQL store that the file TARGET names, or back.

    The other way, SOURCE is the configuration and TARGET a new state directory. Stop ragwatch before. Everything is
    copied: counters, verdicts, labels, costs, saved states and the secret of sampling. SOURCE is not changed. A copy
    that was cut short goes on when the same command is run again; until then ragwatch does not start with TARGET.
    """

    source: Path = argument(type=CONFIG, metavar="SOURCE")
    target: Path = argument(type=CONFIG, metavar="TARGET")


class StoreViewsArguments(Arguments, work="ragwatch.commands.administration:views"):
    """Create read-only views of the PostgreSQL store that the file CONFIG names, for Grafana and other readers.

    They stand in a schema of their own (`ragwatch_views` beside `ragwatch`) and contain no texts. Existing ones are
    replaced; ragwatch may be running, and replaces them itself when an upgrade changes the tables. --reader may be
    given several times.
    """

    path: Path = argument(type=CONFIG, metavar="CONFIG")
    readers: Sequence[str] = option("--reader", metavar="ROLE", help="Role that may read the views; must exist.")
    only_print: bool = option("--print", help="Print the SQL statements instead of running them.")


class ForgetArguments(Arguments, work="ragwatch.commands.forget:forget"):
    """Erase a person from the state: texts, metadata, ids and notes of answers with these ids or metadata.

    Pending draws become unjudged; canary runs and events that contain the texts lose them. The database is then
    written again, so that no byte of a text remains in free space. Scores and labels remain unless --with-scores is
    given, as does the hash of each id, so that no answer is stored again. What cannot be erased (logs, suites, anchors,
    backups, providers) is listed. Workers that share a PostgreSQL database may go on.

    A running ragwatch is asked over HTTP (right `write`): it stops reading and judging for that long. The command
    needs to read the state directory.

    Exit code 1 when it cannot be asked or bytes remain, 2 for a usage or configuration error, 3 when no stored answer
    matches.
    """

    ids: Sequence[str] = argument(metavar="[ID]...")
    metadata: Sequence[str] = option(metavar="KEY=VALUE", help="All answers with this value in their metadata.")
    path: Path | None = option(
        "--config",
        type=CONFIG,
        help="Configuration file (YAML): state, keys, redaction, other files; without --state, default: the usual one.",
    )
    state: Path | None = option(type=CONFIG, help="State directory; default: that of the configuration.")
    url: str | None = URL
    token_file: Path | None = TOKEN_FILE
    with_scores: bool = option(help="Also delete scores and labels, which changes estimates of that time.")
    dry_run: bool = option(help="Only count what would be erased.")


class AuditVerifyArguments(Arguments, work="ragwatch.commands.administration:verify_audit"):
    """Check that no line of an audit log was changed, deleted, inserted or moved; names the first broken line.

    Give rotated files together, the oldest first. Exit code 1 when the chain is broken, 3 when there is no line.
    """

    files: Sequence[Path] = argument(required=True, type=INPUT, metavar="FILE...")


class RedactArguments(Arguments, work="ragwatch.commands.redact:redact"):
    """Show what redaction takes from FILE (any text; `-` is standard input): rule, line, column and a masked excerpt.

    Counts by rule go to stderr. Nothing is stored or changed; docs/redaction.md lists the rules.

    Exit code 0 when nothing would be redacted, 1 when something would be, 2 for usage or configuration.
    """

    file: BinaryIO = argument(type=click.File("rb"))
    path: Path | None = option(
        "--config", type=CONFIG, help="Configuration file (YAML): its own rules and keys are used too."
    )
    as_json: bool = option("--json", help="Print JSON instead of lines.")


class RulesArguments(Arguments, work="ragwatch.commands.rules:rules"):
    """Write recording rules and alerts for the thresholds, windows and objectives of a configuration.

    With --dashboards also the Grafana dashboards: their links lead to `web.external_url`, and panels that the
    configured judges can never fill are left out.

    With --from-baseline, print a section `thresholds` for the configuration: for each route and quantity the lower
    bound of its baseline, less the tolerance. Comments say how often each threshold would have paged last week, and how
    often the present one. Exit code 3 when no baseline is learned yet.
    """

    path: Path = CONFIG_FILE
    shape: str = option(
        "--format",
        type=click.Choice(["prometheus", "operator"]),
        default="prometheus",
        help="Rule files, or a PrometheusRule resource.",
    )
    out: Path | None = option(type=FOLDER, help="Directory to write to; default: stdout.")
    dashboards: Path | None = option(
        type=FOLDER,
        help="Directory to write the Grafana dashboards to; the rules are then written only with --out.",
    )
    from_baseline: bool = option(help="Instead, propose thresholds by route from the stored drift baselines.")


class ConfigSchemaArguments(Arguments, work="ragwatch.commands.administration:schema"):
    """Print the JSON schema of the configuration file, for editors and validators.

    An editor with a YAML language server completes and checks keys if the file begins with the line
    `# yaml-language-server: $schema=ragwatch.schema.json` and the schema lies beside it.
    """


class CompletionArguments(Arguments, work="ragwatch.commands.administration:completion"):
    """Print a script that completes the commands and options of ragwatch in a shell.

    For bash: `ragwatch completion bash > ~/.local/share/bash-completion/completions/ragwatch`. For zsh, write it to a
    file `_ragwatch` in a directory of `$fpath`; for fish, to `~/.config/fish/completions/ragwatch.fish`.
    """

    shell: str = argument(type=click.Choice(["bash", "fish", "zsh"]))
