"""Serves what an LLM judge was asked about one answer, built again from what is stored, and the verdict on it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TypedDict

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from ragwatch import __version__
from ragwatch.core.sample import SampleRecord
from ragwatch.errors import StoreError
from ragwatch.ports import PackedVerdict, Query, Store
from ragwatch.web.pages import page
from ragwatch.web.reply import json_reply
from ragwatch.web.request_limit import MIB, RequestLimit
from ragwatch.web.sample_page import LINE_BYTES, MAX_JUDGES, TEXT_BYTES, cut
from ragwatch.web.samples import KEY

MAX_CHARS = 200_000  # of a prompt or a verdict on the page
RESPONSE_SIZE = 16 * MIB  # approximate memory for one response
_NOT_FOUND, _SERVICE_UNAVAILABLE = 404, 503
_NO_REPLY = (
    "No raw reply of a model is stored: the judge asks none, its texts are not kept, or the verdict is of an earlier "
    "version of ragwatch."
)
_IDS = "The random ids of lines are others than in the request, because a sample must not know them."
_FIRST = "Shown are the calls that depend on no reply; others may have followed (isolated reading, second reading)."
_NO_PROMPT = "This judge asks no model, or is not configured any more: there is no prompt."
_NO_TEXT = "The texts of the sample are deleted, damaged or too large: the prompt cannot be built."


class RebuiltPrompts(TypedDict):
    """The first prompts of a judge about a sample, or why there are none; and its version."""

    version: str
    prompts: Sequence[Mapping[str, str]]
    error: str | None


Prompts = Callable[[str, SampleRecord], RebuiltPrompts | None]
"""Builds the prompts of a judge about a stored sample; None for a judge without any."""


class PromptView(TypedDict):
    """A verdict with the prompts behind it."""

    key: str
    judge: str
    version: str
    in_force: str | None
    prompts: Sequence[Mapping[str, str]]
    verdict: Mapping[str, object] | None
    reply: str | None
    notes: list[str]


def prompt_routes(store: Store | None, prompts: Prompts | None, limit: RequestLimit) -> list[Route]:
    """Routes `/samples/KEY/prompt?judge=NAME`, and the same data as JSON below `/api/v1`.

    Args:
        store: Store of the samples; None for no samples.
        prompts: Builds prompts again; None if no judge has prompts.
        limit: Limits concurrent requests.
    """

    def view_of(request: Request) -> PromptView | None:
        key, judge = request.path_params["key"], request.query_params.get("judge", "")
        return None if store is None or not KEY.fullmatch(key) else prompt_view(store, prompts, key, judge)

    def render(request: Request) -> Response:
        error, status, view = None, 200, None
        try:
            view = view_of(request)
            if view is None:
                error, status = "No verdict of this judge on such an answer is stored.", _NOT_FOUND
        except StoreError as failure:
            error, status = f"The store cannot be read: {failure}", _SERVICE_UNAVAILABLE
        context = {"version": __version__, "root": "../../", "error": error, "view": view and _shown(view)}
        return HTMLResponse(page("prompt.html", context), status)

    def encode(request: Request) -> Response:
        view = view_of(request)
        missing = {"error": "there is no verdict of this judge on a sample with this key"}
        return json_reply(missing, _NOT_FOUND) if view is None else json_reply(view)

    async def html(request: Request) -> ASGIApp:
        return await limit.answer(lambda: render(request), RESPONSE_SIZE)

    async def as_json(request: Request) -> ASGIApp:
        return await limit.answer(lambda: encode(request), RESPONSE_SIZE)

    return [Route("/samples/{key}/prompt", html), Route("/api/v1/samples/{key}/prompt", as_json)]


def prompt_view(store: Store, prompts: Prompts | None, key: str, judge: str) -> PromptView | None:
    """Reads a verdict and builds its prompt again; None if there is no such verdict.

    Raises:
        StoreError: The store cannot be read.
    """
    entry, record = None, None
    for one in store.entries(Query(key=key, limit=MAX_JUDGES)):  # one of them has the text
        record = record or _record(one)
        entry = one if one.verdict.judge == judge else entry
    if entry is None:
        return None
    built = None if prompts is None or record is None else prompts(judge, record)
    version = entry.verdict.judge_version
    replies = store.replies(entry.seq)
    notes = list(_notes(version, built, has_text=record is not None))
    return {
        "key": key,
        "judge": judge,
        "version": version,
        "in_force": None if built is None else built["version"],
        "prompts": [] if built is None else built["prompts"],
        "verdict": _verdict(entry),
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


def _record(entry: PackedVerdict) -> SampleRecord | None:
    """The stored sample, if it is readable and whole."""
    try:
        fields, whole = (None, False) if entry.sample is None else entry.sample.beginning(TEXT_BYTES)
    except StoreError:
        return None
    return fields if whole else None


def _verdict(entry: PackedVerdict) -> Mapping[str, object] | None:
    try:
        fields, whole = entry.line.beginning(LINE_BYTES)
    except StoreError:
        return None
    return {**entry.bare, **fields, **entry.place} if whole else None


def _shown(view: PromptView) -> dict[str, object]:
    """The data with texts of bounded length."""
    verdict = None if view["verdict"] is None else json.dumps(view["verdict"], indent=1, default=dict)
    prompts = [{name: cut(text, MAX_CHARS) for name, text in prompt.items()} for prompt in view["prompts"]]
    reply = None if view["reply"] is None else cut(view["reply"], MAX_CHARS)
    return {**view, "prompts": prompts, "reply": reply, "verdict": None if verdict is None else cut(verdict, MAX_CHARS)}
