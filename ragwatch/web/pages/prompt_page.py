"""Serves what an LLM judge was asked about one answer, built again from what is stored, and the verdict on it."""

import json
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import TypedDict

from starlette.requests import Request
from starlette.routing import Route

from ragwatch.errors import StoreError
from ragwatch.model.sample import SampleRecord
from ragwatch.ports import Query, Store, StoredText
from ragwatch.web.pages.figure_replies import Anything, Key
from ragwatch.web.pages.pages import Site
from ragwatch.web.pages.sample_page import LINE_BYTES, MAX_JUDGES, TEXT_BYTES
from ragwatch.web.request_limit import MIB
from ragwatch.web.samples import KEY

MAX_CHARS = 200_000  # of a prompt or a verdict on the page
RESPONSE_SIZE = 16 * MIB  # approximate memory for one response
_NO_REPLY = (
    "No raw reply of a model is stored: the judge asks none, its texts are not kept, or the verdict is of an earlier "
    "version of ragwatch."
)
_IDS = "The random ids of lines are others than in the request, because a sample must not know them."
_FIRST = "Shown are the calls that depend on no reply; others may have followed (isolated reading, second reading)."
_NO_PROMPT = "This judge asks no model, or is not configured any more: there is no prompt."
_NO_TEXT = "The texts of the sample are deleted, damaged or too large: the prompt cannot be built."


class PromptTexts(TypedDict):
    """One call to a model."""

    system: str
    user: str


class Prompt(TypedDict):
    """A verdict with the prompts behind it."""

    key: Key
    judge: str
    version: str
    in_force: str | None
    prompts: Sequence[PromptTexts]
    verdict: Anything | None
    reply: str | None
    notes: Sequence[str]


class RebuiltPrompts(TypedDict):
    """The first prompts of a judge about a sample, or why there are none; and its version."""

    version: str
    prompts: Sequence[Mapping[str, str]]
    error: str | None


Prompts = Callable[[str, SampleRecord], RebuiltPrompts | None]
"""Builds the prompts of a judge about a stored sample; None for a judge without any."""


def prompt_routes(site: Site, prompts: Prompts) -> list[Route]:
    """Routes `/samples/KEY/prompt?judge=NAME`, and the same data as JSON below `/api/v1`."""

    def data(request: Request) -> tuple[Mapping[str, object], int]:
        key, judge = request.path_params["key"], request.query_params.get("judge", "")
        view = prompt_view(site.store, prompts, key, judge) if KEY.fullmatch(key) else None
        missing = {"error": "there is no verdict of this judge on a sample with this key"}
        return (missing, 404) if view is None else (view, 200)

    def context(_: Request, error: str | None, view: Mapping[str, object] | None = None) -> dict[str, object]:
        verdict = None if view is None else json.dumps(view["verdict"], indent=1, default=dict)
        return {"root": "../../", "error": error, "view": view, "verdict": verdict, "max_chars": MAX_CHARS}

    def html(request: Request) -> tuple[dict[str, object], int]:
        view, status = data(request)
        if status == HTTPStatus.NOT_FOUND:
            return context(request, "No verdict of this judge on such an answer is stored."), status
        return context(request, None, view), status

    return [
        site.page("/samples/{key}/prompt", "prompt.html", html, RESPONSE_SIZE, invalid=context),
        site.reply("/api/v1/samples/{key}/prompt", data, RESPONSE_SIZE),
    ]


def prompt_view(store: Store, prompts: Prompts, key: str, judge: str) -> Prompt | None:
    """Reads a verdict and builds its prompt again; None if there is no such verdict.

    Raises StoreError: the store cannot be read.
    """
    entry, record = None, None
    for one in store.entries(Query(key=key, limit=MAX_JUDGES)):  # one of them has the text
        record = record or _whole(one.sample, TEXT_BYTES)
        entry = one if one.verdict.judge == judge else entry
    if entry is None:
        return None
    built = None if record is None else prompts(judge, record)
    version = entry.verdict.judge_version
    replies, line = store.replies(entry.seq), _whole(entry.line, LINE_BYTES)
    notes = list(_notes(version, built, has_text=record is not None))
    return {
        "key": key,
        "judge": judge,
        "version": version,
        "in_force": None if built is None else built["version"],
        "prompts": []
        if built is None
        else [{"system": one["system"], "user": one["user"]} for one in built["prompts"]],
        "verdict": None if line is None else {**entry.bare, **line, **entry.place},
        "reply": "\n\n".join(replies) if replies else None,
        "notes": [*notes, *(() if replies else (_NO_REPLY,))],
    }


def _notes(version: str, built: RebuiltPrompts | None, *, has_text: bool) -> list[str]:
    """What differs from the request that was sent."""
    if not has_text:
        return [_NO_TEXT]
    if built is None:
        return [_NO_PROMPT]
    notes = [] if built["error"] is None else [f"The judge in force does not read such a sample: {built['error']}."]
    if built["version"] != version:
        notes.append(
            f"The verdict is by version {version}; the prompt is that of {built['version']}, which is in force."
        )
    return [*notes, _IDS, _FIRST] if built["prompts"] else notes


def _whole(text: StoredText | None, most: int) -> SampleRecord | None:
    """The fields of a stored text, if it is readable and not larger than so many bytes."""
    try:
        fields, whole = (None, False) if text is None else text.beginning(most)
    except StoreError:
        return None
    return fields if whole else None
