"""Options that sources of log records share: how records are selected and read."""

from __future__ import annotations

from dataclasses import replace

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from ragwatch.errors import ConfigError
from ragwatch.formats.log_reader import LogReader, RecordRules
from ragwatch.formats.record import known_encoding
from ragwatch.formats.selection import AUTO


class RecordOptions(BaseModel):
    """How the records of a source are selected and read."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(
        min_length=1, description="Name of the source: the label `source`, and part of every sample's key."
    )
    format: str = Field("auto", description="Format of the records; `auto` detects it from the first ones.")
    mapping: dict[str, str] = Field({}, description="Where the fields of a sample are, for the format `custom`.")
    where: str | None = Field(
        None, min_length=1, description="JMESPath condition on records; others are skipped, not rejected."
    )
    records: str | None = Field(
        None,
        min_length=1,
        description="JMESPath of the records in a line or document that holds several: `data` of an API's page.",
    )
    timezone: str | None = Field(
        None, min_length=1, description="Time zone of times without an offset, such as `Europe/Berlin`; by default UTC."
    )
    resolve: dict[str, str] | None = Field(
        None,
        description="For contexts that are logged as ids: `file` with the corpus (JSONL, CSV or SQLite), its fields "
        "`id` and `text`, by default of these names, and the `table` of SQLite.",
    )
    split: str | dict[str, str] | None = Field(
        None, description="Kind of the passages that are cut out of a text, such as a prompt, that contains them."
    )

    @model_validator(mode="after")
    def _can_be_read_with(self) -> RecordOptions:
        """Check the options together, before anything is read."""
        try:
            LogReader(self.rules)
        except ConfigError as error:
            raise ValueError(str(error)) from error
        return self

    @property
    def rules(self) -> RecordRules:
        """How the records are read."""
        return RecordRules(
            self.format,
            self.mapping,
            where=self.where,
            split=self.split,
            records=self.records,
            timezone=self.timezone,
            resolve=self.resolve,
        )


class LineOptions(RecordOptions):
    """How the lines of a log are selected and read."""

    prefix: str | None = Field(
        None, min_length=1, description="Text before the JSON object of a line: `auto`, or a regular expression."
    )
    encoding: str | None = Field(
        None, min_length=1, description="Encoding of the files, such as `utf-16` or `cp1252`; by default UTF-8."
    )
    skip_prefix: bool = Field(default=False, description="The older spelling of `prefix: auto`.")

    @field_validator("encoding")
    @classmethod
    def _known_encoding(cls, name: str | None) -> str | None:
        """Check that Python knows the encoding, and that lines can be cut in it."""
        return None if name is None else known_encoding(name)

    @model_validator(mode="after")
    def _one_spelling(self) -> LineOptions:
        if self.skip_prefix and self.prefix not in (None, AUTO):
            raise ValueError("skip_prefix is the older spelling of `prefix: auto`; write `prefix` only")
        return self

    @property
    def rules(self) -> RecordRules:
        """How the lines are read."""
        prefix = AUTO if self.skip_prefix else self.prefix
        return replace(super().rules, prefix=prefix, encoding=self.encoding)


def reads_existing(options: BaseModel) -> BaseModel:
    """Options of a source with which it reads what exists from its beginning, files of one JSON document as well."""
    changes = {"start": "beginning", "documents": True}
    return options.model_copy(update={key: changes[key] for key in changes.keys() & type(options).model_fields.keys()})
