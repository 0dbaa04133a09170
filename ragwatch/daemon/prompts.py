"""Builds the prompts about a stored sample again, for people who ask why a judge says what it says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ragwatch.core.sample import Sample
from ragwatch.errors import JudgeError
from ragwatch.ports import Judge
from ragwatch.ports.capabilities import ShowsPrompts
from ragwatch.stores.rows import sample_of
from ragwatch.web import RebuiltPrompts


def rebuilt_prompts(judges: Iterable[Judge], name: str, record: Mapping[str, object]) -> RebuiltPrompts | None:
    """Return the version in force and the first prompts of a judge; None if it asks no model or is not configured.

    Args:
        judges: The judges in force.
        name: Name of the judge.
        record: The stored sample.
    """
    for judge in judges:
        if judge.name == name and isinstance(judge, ShowsPrompts):
            prompts, error = _prompts(judge, sample_of(record))
            return {"version": judge.version, "prompts": prompts, "error": error}
    return None


def _prompts(judge: ShowsPrompts, sample: Sample) -> tuple[Sequence[Mapping[str, str]], str | None]:
    """The prompts of a judge, or why there are none. The id as seed gives the same ones each time."""
    try:
        prompts = judge.first_prompts(sample, sample.id)
    except JudgeError as error:
        return [], str(error)
    return [{"system": system, "user": user} for system, user in prompts], None
