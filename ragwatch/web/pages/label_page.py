"""Serves the page on which people label answers, one at a time: plain forms, which a script makes faster.

The page shows neither what judges say of an answer nor what other people do. Addresses change nothing; forms do, and
lead back to the page, which then shows the next answer.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import TypeVar
from urllib.parse import parse_qsl, urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from ragwatch.board import Board
from ragwatch.errors import ConfigError, StoreError
from ragwatch.model.evidence import ClaimVerdict
from ragwatch.model.quantities import Quantity, quantity_of
from ragwatch.statistics.estimators.level import CALIBRATED_LABELS
from ragwatch.statistics.labels.label import CLAIM, HOLDS, NAMES, REPLIES, Label, LabelTask, TaskClaim, label_questions
from ragwatch.statistics.labels.selection import scores_of
from ragwatch.web.access import LABEL_PATH
from ragwatch.web.audit_trail import shown
from ragwatch.web.json_requests import (
    MAX_TASKS,
    LabelRate,
    LabelService,
    annotator_name,
    author,
    check_author,
    label_routes,
)
from ragwatch.web.json_values import ParameterError, read_body
from ragwatch.web.pages.overview import interval_of
from ragwatch.web.pages.pages import ANSWER_CHARS, QUOTE_CHARS, Site, page
from ragwatch.web.pages.sample_page import MAX_CLAIMS, MAX_CONTEXTS, segments
from ragwatch.web.request_limit import MIB
from ragwatch.web.samples import KEY, shortened
from ragwatch.web.server.guard import FIELD, FORM_TOKEN

Meaning = TypeVar("Meaning")
MAX_NOTE_CHARS = 1000  # in a form, whose length is limited
DEFAULT_COUNT = 20
CALIBRATION = "calibration"
MAX_FIELDS = 2000
PAGE_SIZE = 16 * MIB  # approximate memory for one response
_HERE = LABEL_PATH.removeprefix("/")  # relative: a proxy may serve the pages below a path
_TRIES = 20  # samples without a text any more that are passed over
_COUNTED = 10_000  # claims of one answer
CRITERION = "criterion."  # prefix of the names of fields
CALIBRATING = (Quantity.FAITHFULNESS, Quantity.TOP_RANKED_IGNORED)
"""What is asked about an answer to calibrate levels: two questions, so that fifty answers take a quarter of an hour."""


def task_view(task: LabelTask, *, calibrating: bool = False) -> dict[str, object]:
    """Builds the data of the page for one sample: its texts, with the claims marked, and the questions.

    When calibrating, only the questions of `CALIBRATING` are asked, about the answer as a whole.
    """
    claims = [] if calibrating else task["claims"]
    alike = [(claim["start"], claim["end"], ClaimVerdict.SUPPORTED) for claim in claims[:MAX_CLAIMS]]
    return {
        "key": task["key"],
        "route": task["route"],
        "sample": task["sample"],
        "answer": list(segments(task["sample"]["answer"][:ANSWER_CHARS], alike)),
        "max_contexts": MAX_CONTEXTS,
        "claims": len(claims),
        "claims_left_out": max(0, len(claims) - MAX_CLAIMS),
        "questions": list(_questions(task, claims, CALIBRATING if calibrating else None)),
        "note_chars": MAX_NOTE_CHARS,
    }


def _questions(
    task: LabelTask, claims: Sequence[TaskClaim], quantities: Sequence[Quantity] | None
) -> Iterator[dict[str, object]]:
    for number, claim in enumerate(claims[:MAX_CLAIMS], start=1):
        yield {
            "name": f"c{number}",
            "claim": number,
            "text": shortened(claim["text"], QUOTE_CHARS),
            "replies": NAMES["claim"],
        }
    criteria = [(one["name"], one["question"]) for one in task.get("criteria", ())]
    has_contexts = bool(task["sample"]["contexts"])
    for question in label_questions(has_claims=bool(claims), has_contexts=has_contexts, criteria=criteria):
        if quantities is not None and question.quantity not in quantities:
            continue
        prefix = CRITERION if question.quantity.is_criterion else ""
        yield {
            "name": f"{prefix}{question.quantity}",
            "claim": None,
            "text": question.text,
            "replies": NAMES[question.kind],
        }


def label_record(values: Mapping[str, str], *, key: str, annotator: str, at: float) -> dict[str, object]:
    """Reads the label in the fields of a form, as a record. A question without a reply is skipped.

    Raises ParameterError: A field has a value that the form does not offer.
    """
    count = values.get("claims", "0")
    if not (count.isascii() and count.isdigit() and int(count) <= _COUNTED):
        raise ParameterError("claims: not the number of claims of an answer; reload the page")
    claims = tuple(_reply(values, f"c{number}", CLAIM) for number in range(1, int(count) + 1))
    scores: dict[Quantity, float] = {}
    for name in values:
        is_criterion = name.startswith(CRITERION)
        if is_criterion or name in REPLIES:
            score = _reply(values, name, HOLDS if is_criterion else REPLIES[name])
            if score is not None:
                scores[quantity_of(name.removeprefix(CRITERION))] = score
    note = values.get("note", "").replace("\r\n", "\n")
    if len(note) > MAX_NOTE_CHARS:
        raise ParameterError(f"note: more than {MAX_NOTE_CHARS} characters")
    return Label(key, annotator, at, scores_of(claims, scores), claims, note=note).to_record()


def _reply(values: Mapping[str, str], name: str, meanings: Mapping[str, Meaning | None]) -> Meaning | None:
    reply = values.get(name)
    if reply is None:
        return None
    if reply not in meanings:
        raise ParameterError(f"{name[:50]}: not one of {', '.join(meanings)}; reload the page")
    return meanings[reply]


@dataclass(frozen=True, slots=True)
class _Form:
    """Fields of a form, or parameters of an address, and who sent them."""

    values: Mapping[str, str]  # value by name
    user: str | None  # the authenticated client; None for one that did not say who it is
    token: str | None = None  # token for the forms of the page; None for a client that may not write

    @property
    def calibrates(self) -> bool:
        """Whether the page asks the two questions that calibrate levels."""
        return self.values.get("for") == CALIBRATION

    def annotator(self) -> str | None:
        """Name under which labels are stored; None if it is still to be given.

        Raises ParameterError: it is not a name; HTTPException (403): it is that of another person.
        """
        name = self.values.get("annotator") or self.user
        if name is None:
            return None
        check_author(annotator_name(name), self.user)
        return name

    def key(self) -> str:
        """Key of the sample. Raises ParameterError: it is missing or invalid."""
        key = self.values.get("key", "")
        if not KEY.fullmatch(key):
            raise ParameterError("key: not the key of a sample")
        return key


Handler = Callable[[LabelService, _Form], Response]


def label_page_routes(
    site: Site, annotation: Callable[[], LabelService], refused: Callable[[str], None]
) -> list[Route]:
    """`/label` for the page and its forms, and the routes of the API for labels."""
    rate = LabelRate(refused)

    async def answer(handler: Handler, form: _Form) -> ASGIApp:
        return await site.limit.answer(lambda: _handled(handler, annotation(), form), PAGE_SIZE)

    async def show(request: Request) -> ASGIApp:
        return await answer(partial(_show, site.board), _form_of(request, dict(request.query_params)))

    async def act(request: Request) -> ASGIApp:
        body = (await read_body(request)).decode("utf-8", "replace")
        try:  # as browsers encode the fields of a form
            fields = dict(parse_qsl(body, keep_blank_values=True, max_num_fields=MAX_FIELDS))
        except ValueError as error:
            raise ParameterError(f"form: {error}") from error
        return await answer(actions.get(fields.get("do", ""), unknown), _form_of(request, fields))

    def save(service: LabelService, form: _Form) -> Response:
        key = form.key()
        record = label_record(form.values, key=key, annotator=_named(form), at=site.clock())
        rate.take(form.user, 1, service.per_hour)
        shown((key,))
        service.put([record])
        return _next(form)

    def unknown(_: LabelService, form: _Form) -> Response:
        raise ParameterError(f"do: {form.values.get('do', '')[:50]!r} is not known; reload the page")

    actions: dict[str, Handler] = {"start": _start, "save": save, "undo": _undo}
    return [
        Route(LABEL_PATH, show),
        Route(LABEL_PATH, act, methods=["POST"]),
        *label_routes(annotation, site.limit, rate),
    ]


def _form_of(request: Request, values: Mapping[str, str]) -> _Form:
    return _Form(values, author(request), request.scope.get(FORM_TOKEN))


def _handled(handler: Handler, service: LabelService, form: _Form) -> Response:
    """The response of a handler; what is refused is said on the page."""
    try:
        return handler(service, form)
    except (ValueError, ConfigError) as error:
        return _page(form, error=str(error), status=HTTPStatus.BAD_REQUEST)
    except StoreError as error:
        return _page(form, error=f"the store cannot be used: {error}", status=HTTPStatus.SERVICE_UNAVAILABLE)
    except HTTPException as error:
        response = _page(form, error=str(error.detail), status=error.status_code)
        response.headers.update(error.headers or {})
        return response


def _show(board: Board, service: LabelService, form: _Form) -> Response:
    """The answer that is asked for, or the next one of the annotator; else the form with which to begin."""
    name = form.annotator()
    if name is None:
        return _page(form)
    queue = service.queue(name)
    keys = [form.key()] if "key" in form.values else queue["open"][:_TRIES]
    task = next((task for key in keys if (task := service.task(key)) is not None), None)
    if task is None:
        gone = "this answer cannot be labelled: its text is deleted, or no judge in force has judged it"
        missing = "key" in form.values
        status = HTTPStatus.NOT_FOUND if missing else HTTPStatus.OK
        return _page(form, annotator=name, queue=queue, error=gone if missing else None, status=status)
    shown((task["key"],))
    view = task_view(task, calibrating=form.calibrates)
    view |= {"given": task["key"] in queue["given"], "levels": _levels(board, task["route"])}
    return _page(form, annotator=name, queue=queue, task=view)


def _levels(board: Board, route: str) -> list[dict[str, object]]:
    """Levels of a route that labels narrow: of each quantity that calibration asks about, in its longest window."""
    snapshot = board.latest()
    corrected = () if snapshot is None else snapshot.corrected
    rows = (row for row in corrected if row.route == route and row.quantity in CALIBRATING and not row.reference)
    newest = {row.quantity: row for row in rows}
    return [
        {"quantity": str(quantity), "labels": row.labels, **interval_of(row.estimate)}
        for quantity, row in newest.items()
    ]


def _start(service: LabelService, form: _Form) -> Response:
    count = form.values.get("count", "")
    if not (count.isascii() and count.isdigit() and 1 <= int(count) <= MAX_TASKS):
        raise ParameterError(f"count: not a whole number from 1 to {MAX_TASKS}")
    shown(task["key"] for task in service.tasks(_named(form), int(count)))
    return _next(form, begun="yes")


def _undo(service: LabelService, form: _Form) -> Response:
    key, name = form.key(), _named(form)
    shown((key,))
    service.revoke(key, name)
    return _next(form, key=key)


def _named(form: _Form) -> str:
    name = form.annotator()
    if name is None:
        raise ParameterError("annotator: is missing; give your name, labels are stored under it")
    return name


def _next(form: _Form, **parameters: str) -> Response:
    """Leads from a form back to the page."""
    if form.user is None:
        parameters = {"annotator": _named(form), **parameters}
    if form.calibrates:
        parameters = {**parameters, "for": CALIBRATION}
    address = f"{_HERE}?{urlencode(parameters)}" if parameters else _HERE
    return RedirectResponse(address, HTTPStatus.SEE_OTHER)


def _page(
    form: _Form,
    *,
    annotator: str | None = None,
    queue: Mapping[str, object] | None = None,
    task: Mapping[str, object] | None = None,
    error: str | None = None,
    status: int = HTTPStatus.OK,
) -> Response:
    view = {
        FIELD: form.token,
        "user": form.user,
        "annotator": annotator or form.values.get("annotator", ""),
        "queue": queue,
        "begun": "begun" in form.values,
        "key": key if KEY.fullmatch(key := form.values.get("key", "")) else None,
        "task": task,
        "error": error,
        "calibrates": form.calibrates,
        "default_count": CALIBRATED_LABELS if form.calibrates else DEFAULT_COUNT,
        "max_count": MAX_TASKS,
    }
    return HTMLResponse(page("label.html", view), status)
