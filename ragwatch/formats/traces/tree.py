"""The spans of a trace as the steps of one or several RAG requests.

A request starts at a local root: a span without parent, or one whose parent is in another process. What another
process has done for it belongs to it, unless that process has retrieved and generated itself: that is a request of its
own. So are several chains that retrieve and generate below one span that is no chain, such as a job.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from ragwatch.formats.traces.kinds import Kind, kind_of
from ragwatch.formats.traces.span import Span

_IGNORED = frozenset({Kind.EVALUATOR, Kind.GUARDRAIL})
RETRIEVALS = frozenset({Kind.RETRIEVER, Kind.RERANKER})


@dataclass(slots=True, eq=False)
class Step:
    """A span, and where it is in its request.

    Attributes:
        span: The span.
        kind: What it does.
        parent: The span that called it; None for the first one.
        ignored: Whether it is a part of an evaluator or a guardrail.
        retrieval: The outermost retriever or reranker that it is a part of, None if it is none's part.
        tool: The outermost tool that it is a part of.
    """

    span: Span
    kind: Kind
    parent: Step | None = None
    ignored: bool = False
    retrieval: Step | None = None
    tool: Step | None = None

    def callers(self) -> list[Step]:
        """Chains and agents that it is a part of, outermost first."""
        path = []
        step = self.parent
        while step is not None:
            if step.kind is Kind.CHAIN:
                path.append(step)
            step = step.parent
        return path[::-1]


@dataclass(slots=True)
class Request:
    """Steps of one request, sorted by time.

    Attributes:
        root: The first span; None if it is missing.
        steps: All steps.
    """

    root: Step | None
    steps: list[Step] = field(default_factory=list)

    def of_kind(self, *kinds: Kind) -> list[Step]:
        """Steps of these kinds, sorted by start."""
        return [step for step in self.steps if step.kind in kinds and not step.ignored]


def requests(spans: Iterable[Span]) -> list[Request]:
    """Return the requests in the spans of one trace, by their start. The order of the spans does not matter."""
    distinct = {span.span_id: span for span in spans}
    ordered = sorted(distinct.values(), key=lambda span: (span.start, -span.end, span.span_id))
    children, tops = _children(ordered, distinct)
    kinds = {span.span_id: kind_of(span) for span in ordered}
    own = _starts_of_requests(ordered, distinct, kinds) | _parallel_starts(tops, children, kinds)
    forest = _Forest(children, kinds, own)
    rooted = [span for span in tops if span.is_local_root]
    by_root: dict[str, Request] = {}
    for top in tops:
        owner = top if top.is_local_root or not rooted else _enclosing(top, rooted)
        forest.walk(top, owner.span_id if owner.is_local_root else "", by_root)
    for request in by_root.values():
        request.steps.sort(key=lambda step: (step.span.start, -step.span.end, step.span.span_id))
    return sorted(by_root.values(), key=lambda request: request.steps[0].span.start)


def _children(ordered: Sequence[Span], distinct: dict[str, Span]) -> tuple[dict[str, list[Span]], list[Span]]:
    """The spans that each span has called, and those that no known span has called. Loops are cut at their start."""
    children: dict[str, list[Span]] = {}
    tops = []
    for span in ordered:
        if span.parent_id in distinct and span.parent_id != span.span_id:
            children.setdefault(span.parent_id, []).append(span)
        else:
            tops.append(span)
    reached = set()
    waiting = list(tops)
    while waiting:
        span = waiting.pop()
        reached.add(span.span_id)
        waiting += children.get(span.span_id, ())
    for span in ordered:
        if span.span_id not in reached:  # a part of a loop: hostile or broken
            children[span.parent_id].remove(span)
            tops.append(span)
            waiting = [span]
            while waiting:
                one = waiting.pop()
                reached.add(one.span_id)
                waiting += [child for child in children.get(one.span_id, ()) if child.span_id not in reached]
    return children, tops


def _starts_of_requests(ordered: Sequence[Span], distinct: dict[str, Span], kinds: dict[str, Kind]) -> set[str]:
    """Local roots with a known caller in whose process a retrieval and a generation happened."""
    remote = {span.span_id for span in ordered if span.remote is True and span.parent_id in distinct}
    if not remote:
        return set()
    owners: dict[str, str] = {}
    happened: dict[str, set[Kind]] = {}
    for span in ordered:
        path: list[str] = []
        current: Span | None = span
        while current is not None and current.span_id not in owners and current.span_id not in remote:
            if current.span_id in path or len(path) > len(ordered):
                break
            path.append(current.span_id)
            current = distinct.get(current.parent_id)
        owner = (
            "" if current is None else owners.get(current.span_id, current.span_id if current.span_id in remote else "")
        )
        owners.update(dict.fromkeys(path, owner))
        happened.setdefault(owner, set()).add(kinds[span.span_id])
    return {name for name in remote if Kind.LLM in happened.get(name, ()) and RETRIEVALS & happened.get(name, set())}


def _parallel_starts(tops: Sequence[Span], children: dict[str, list[Span]], kinds: dict[str, Kind]) -> set[str]:
    """Chains below one span that is no chain, such as a job, or is missing, if several retrieve and generate."""
    starts: set[str] = set()
    by_root: dict[str, dict[str, set[Kind]]] = {}
    for top in tops:
        kinds_below = by_root.setdefault(top.span_id if top.is_local_root else "", {})
        waiting: list[tuple[Span, str]] = [(top, "")]
        while waiting:
            span, chain = waiting.pop()
            kind = kinds[span.span_id]
            name = chain or (span.span_id if kind is Kind.CHAIN else "")
            if name:
                kinds_below.setdefault(name, set()).add(kind)
            waiting += [(child, name) for child in children.get(span.span_id, ())]
    for kinds_below in by_root.values():
        whole = {name for name, inside in kinds_below.items() if Kind.LLM in inside and RETRIEVALS & inside}
        if len(whole) > 1:
            starts |= whole
    return starts


def _enclosing(span: Span, roots: Sequence[Span]) -> Span:
    """The local root during which a span without known caller began: of its process if possible, the latest."""
    during = [root for root in roots if root.start <= span.start <= root.end]
    same = [root for root in during if root.resource == span.resource]
    return (same or during or list(roots))[-1]


@dataclass(frozen=True, slots=True)
class _Forest:
    """The spans of a trace: which each has called, what each does, and which start a request of their own."""

    children: dict[str, list[Span]]
    kinds: dict[str, Kind]
    own: set[str]

    def walk(self, top: Span, owner: str, by_root: dict[str, Request]) -> None:
        """Add a span and everything below it to requests."""
        waiting: list[tuple[Span, Step | None, str]] = [(top, None, owner)]
        while waiting:
            span, parent, name = waiting.pop()
            if span.span_id in self.own:
                parent, name = None, span.span_id
            step = _step(span, self.kinds[span.span_id], parent)
            request = by_root.setdefault(name, Request(None))
            request.steps.append(step)
            if name == span.span_id:
                request.root = step
            waiting += [(child, step, name) for child in self.children.get(span.span_id, ())]


def _step(span: Span, kind: Kind, parent: Step | None) -> Step:
    step = Step(span, kind, parent)
    step.ignored = kind in _IGNORED
    if parent is not None:
        step.ignored |= parent.ignored
        step.retrieval = parent.retrieval or (parent if parent.kind in RETRIEVALS else None)
        step.tool = parent.tool or (parent if parent.kind is Kind.TOOL else None)
    return step


def below(steps: Iterable[Step], outer: Step) -> Iterator[Step]:
    """Retrievals that are a part of another one."""
    return (step for step in steps if step.retrieval is outer and step.kind in RETRIEVALS)
