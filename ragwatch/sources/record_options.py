"""Options that kinds of sources share: their name, and how records are selected and read."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from ragwatch.errors import ConfigError
from ragwatch.formats.log_reader import LogReader, RecordRules
from ragwatch.model.units import size_bytes

Size = Annotated[int, BeforeValidator(size_bytes)]
"""Bytes, as a number or a text such as `64MiB`."""


class SourceOptions(BaseModel):
    """Options that sources of all kinds have."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(
        min_length=1, description="Name of the source: the label `source`, and part of every sample's key."
    )


class RecordOptions(SourceOptions):
    """How the records of a source are selected and read."""

    format: str = Field("auto", description="Format of the records; `auto` detects it from the first ones.")
    mapping: dict[str, str] = Field(
        {},
        description="Where the fields of a sample are, for the format `custom`; with another one, in place "
        "of what it reads.",
    )
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


def reads_existing(options: BaseModel) -> BaseModel:
    """Options of a source with which it reads what exists from its beginning, files of one JSON document as well."""
    changes = {"start": "beginning", "documents": True}
    return options.model_copy(update={key: changes[key] for key in changes.keys() & type(options).model_fields.keys()})
