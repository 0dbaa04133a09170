"""The spans of a trace as the steps of one or several RAG requests.

A request starts at a local root: a span without parent, or one whose parent is in another process. What another
process has done for it belongs to it, unless that process has retrieved and generated itself: that is a request of its
own. So are several chains that retrieve and generate below one span that is no chain, such as a job.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ragwatch.formats.traces.kinds import Kind, kind_of
from ragwatch.formats.traces.span import Span

_IGNORED = frozenset({Kind.EVALUATOR, Kind.GUARDRAIL})
_RETRIEVALS = frozenset({Kind.RETRIEVER, Kind.RERANKER})
Children = dict[str, list[Span]]
"""The spans that a span has called, by its id."""


@dataclass(slots=True, eq=False)
class Step:
    """A span, and where it is in its request."""

    span: Span  # the span
    kind: Kind  # what it does
    parent: Step | None = None  # the span that called it; None for the first one
    ignored: bool = False  # whether it is a part of an evaluator or a guardrail
    retrieval: Step | None = None  # the outermost retriever or reranker that it is a part of, None if it is none's part
    tool: Step | None = None  # the outermost tool that it is a part of

    def outer(self) -> list[Step]:
        """All that it is a part of, outermost first."""
        path = []
        step = self.parent
        while step is not None:
            path.append(step)
            step = step.parent
        return path[::-1]

    def callers(self) -> list[Step]:
        """Chains and agents that it is a part of, outermost first."""
        return [step for step in self.outer() if step.kind is Kind.CHAIN]


@dataclass(slots=True)
class Request:
    """Steps of one request, sorted by time."""

    root: Step | None  # the first span; None if it is missing
    steps: list[Step] = field(default_factory=list)  # all steps

    def of_kind(self, *kinds: Kind) -> list[Step]:
        """Steps of these kinds, sorted by start."""
        return [step for step in self.steps if step.kind in kinds and not step.ignored]


def requests(spans: Iterable[Span]) -> list[Request]:
    """Return the requests in the spans of one trace, by their start. The order of the spans does not matter."""
    distinct = {span.span_id: span for span in spans}
    ordered = sorted(distinct.values(), key=lambda span: (span.start, -span.end, span.span_id))
    children, tops = _children(ordered, distinct)
    kinds = {span.span_id: kind_of(span) for span in ordered}
    own = _starts_of_requests(tops, children, kinds)
    rooted = [span for span in tops if span.is_local_root]
    by_root: dict[str, Request] = {}
    for top in tops:
        owner = top if top.is_local_root or not rooted else _enclosing(top, rooted)
        waiting: list[tuple[Span, Step | None, str]] = [(top, None, owner.span_id if owner.is_local_root else "")]
        while waiting:
            span, parent, name = waiting.pop()
            if span.span_id in own:
                parent, name = None, span.span_id
            step = _step(span, kinds[span.span_id], parent)
            request = by_root.setdefault(name, Request(None))
            request.steps.append(step)
            if name == span.span_id:
                request.root = step
            waiting += [(child, step, name) for child in children.get(span.span_id, ())]
    for request in by_root.values():
        request.steps.sort(key=lambda step: (step.span.start, -step.span.end, step.span.span_id))
    return sorted(by_root.values(), key=lambda request: request.steps[0].span.start)


def _children(ordered: Sequence[Span], distinct: Container[str]) -> tuple[Children, list[Span]]:
    """The spans that each span has called, and those that no known span has called. Loops are cut at their start."""
    children: dict[str, list[Span]] = {}
    for span in ordered:
        if span.parent_id in distinct and span.parent_id != span.span_id:
            children.setdefault(span.parent_id, []).append(span)
    called = {span.span_id for some in children.values() for span in some}
    tops = [span for span in ordered if span.span_id not in called]
    reached: set[str] = set()
    for span in (*tops, *ordered):
        if span.span_id in reached:
            continue
        if span.span_id in called:  # a part of a loop: hostile or broken
            children[span.parent_id].remove(span)
            tops.append(span)
        waiting = [span]
        while waiting:
            one = waiting.pop()
            reached.add(one.span_id)
            waiting += [child for child in children.get(one.span_id, ()) if child.span_id not in reached]
    return children, tops


def _starts_of_requests(tops: Sequence[Span], children: Children, kinds: Mapping[str, Kind]) -> set[str]:
    """Spans that start a request of their own.

    Local roots with a known caller in whose process a retrieval and a generation happened; and chains below one span
    that is no chain, such as a job, or is missing, if several retrieve and generate.
    """
    first = {span.span_id for span in tops}

    def process(span: Span, name: str) -> str:
        return span.span_id if span.remote is True and span.span_id not in first else name

    def chain(span: Span, name: str) -> str:
        return name or (span.span_id if kinds[span.span_id] is Kind.CHAIN else "")

    several = [*kinds.values()].count(Kind.LLM) > 1  # without it no walk is needed
    below = _whole(tops, children, kinds, chain) if several else set()
    times = Counter(root for root, _ in below)
    starts = {name for root, name in below if times[root] > 1}
    called = (span for some in children.values() for span in some)
    if any(span.remote is True for span in called):
        starts |= {name for _, name in _whole(tops, children, kinds, process)}
    return starts


def _whole(
    tops: Sequence[Span], children: Children, kinds: Mapping[str, Kind], group: Callable[[Span, str], str]
) -> set[tuple[str, str]]:
    """The groups of spans that retrieve and generate, behind the root that they are below.

    `group` gives the name of the group of a span, from that of the span that called it.
    """
    happened: dict[tuple[str, str], set[Kind]] = {}
    for top in tops:
        root = top.span_id if top.is_local_root else ""
        waiting = [(top, "")]
        while waiting:
            span, outer = waiting.pop()
            name = group(span, outer)
            if name:
                happened.setdefault((root, name), set()).add(kinds[span.span_id])
            waiting += [(child, name) for child in children.get(span.span_id, ())]
    return {key for key, inside in happened.items() if Kind.LLM in inside and _RETRIEVALS & inside}


def _enclosing(span: Span, roots: Sequence[Span]) -> Span:
    """The local root during which a span without known caller began: of its process if possible, the latest."""
    during = [root for root in roots if root.start <= span.start <= root.end]
    same = [root for root in during if root.resource == span.resource]
    return (same or during or list(roots))[-1]


def _step(span: Span, kind: Kind, parent: Step | None) -> Step:
    step = Step(span, kind, parent)
    step.ignored = kind in _IGNORED
    if parent is not None:
        step.ignored |= parent.ignored
        step.retrieval = parent.retrieval or (parent if parent.kind in _RETRIEVALS else None)
        step.tool = parent.tool or (parent if parent.kind is Kind.TOOL else None)
    return step
