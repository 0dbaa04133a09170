"""The section `segments`: metadata keys with the values by which estimates are split."""

from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from ragwatch.model.sample import OTHER


def _text(value: object) -> object:
    """A value as it is compared with metadata: true and numbers as JSON writes them."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        raise ValueError(f"{value} is read as a number, and 1.10 as 1.1; write it in quotes")  # noqa: TRY004 - for pydantic
    return str(value) if isinstance(value, int) else value


def _check_values(values: tuple[str, ...]) -> tuple[str, ...]:
    for index, value in enumerate(values):
        if value == OTHER:
            raise ValueError(f"{OTHER!r} is what all values that are not in the list become; leave it out")
        if value != value.strip():
            raise ValueError(f"{value!r} begins or ends with a space; leave it out")
        if value in values[:index]:
            raise ValueError(f"{value!r} is named twice; name it once")
    return values


SegmentKey = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.:/@-]{1,64}$")]
SegmentValue = Annotated[str, BeforeValidator(_text), Field(pattern=r'^[^\x00-\x1f\x7f"\\]{1,64}$')]
SegmentValues = Annotated[tuple[SegmentValue, ...], Field(min_length=1), AfterValidator(_check_values)]
SegmentMap = dict[SegmentKey, SegmentValues]
