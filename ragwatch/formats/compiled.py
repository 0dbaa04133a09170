"""JMESPath expressions as one Python function, twenty times as fast as jmespath: they run for every record of a log.

The function of several expressions works out a part that they share once for each record. It is generated from the
parsed expressions: names and literals get into its text as constants only.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import count
from typing import Any

Value = Callable[[Any], Any]
Node = Mapping[str, Any]
"""A part of an expression as jmespath has parsed it: `type`, `value` and `children`."""
_UNKNOWN = object()
_ROOT = "record"
_LEAVES: Mapping[str, str] = {
    "identity": "{value}",
    "current": "{value}",
    "field": "({value}.get({at!r}) if isinstance({value}, dict) else None)",
    "index": "({value}[{at}] if isinstance({value}, list) and {low} < len({value}) > {at} else None)",
}
_PASS_ON_NULL = ("field", "index", "multi_select_dict", "multi_select_list")


class _NotInTables(Exception):  # noqa: N818 - no error: the expression is left to jmespath
    """An expression has a part that is not generated: a comparison of numbers, a slice, a call that checks types."""


def compile_all(
    expressions: Mapping[str, tuple[Node, Value]], functions: Mapping[str, Value]
) -> Callable[..., Any] | None:
    """Return a function of a record that yields the value of each expression that is not null, by name.

    Its second argument is a list whose first item becomes the name of the expression at work, for errors. None where
    the expressions are nested too deep. With each parsed expression stands the function to call where it has a part
    that cannot be compiled; `functions` are those of one value that expressions may call.
    """
    source = _Source(functions, [node for node, _ in expressions.values()])
    lines = []
    for name, (node, slow) in expressions.items():
        try:
            code = source.code(node, _ROOT)
        except _NotInTables:
            code = f"{source.constant(slow)}({_ROOT})"
        lines += [f"at[0] = {name!r}", f"value = {code}", f"if value is not None: values[{name!r}] = value"]
    return source.function([f"def run({_ROOT}, at):", "values = {}", *source.memory(), *lines, "return values"])


def compile_one(node: Node, slow: Value, functions: Mapping[str, Value]) -> Value:
    """Return the function of one expression; `slow` where it has a part that cannot be compiled."""
    source = _Source(functions, [node])
    try:
        code = source.code(node, _ROOT)
    except _NotInTables:
        return slow
    return source.function([f"def run({_ROOT}):", *source.memory(), f"return {code}"]) or slow


class _Source:
    """Writes the text of a function of some expressions, which works out once what they have in common."""

    def __init__(self, functions: Mapping[str, Value], nodes: Iterable[Node]) -> None:
        self._functions = functions
        self._numbers = count()
        times = Counter(repr(part) for node in nodes for part in _parts_of_record(node))
        self._shared = {part: f"shared{number}" for number, part in enumerate(times) if times[part] > 1}
        self._names: dict[str, object] = {
            "UNKNOWN": _UNKNOWN, "is_number": is_number, "nothing": {}.get,
            "each": _each, "those": _those, "flat": _flat,
            **{f"call_{name}": function for name, function in functions.items()},
        }  # fmt: skip

    def constant(self, value: object) -> str:
        name = f"constant{next(self._numbers)}"
        self._names[name] = value
        return name

    def function(self, lines: list[str]) -> Callable[..., Any] | None:
        """Return the function that some lines define, of which the first is its head; None if it is nested too deep."""
        scope: dict[str, Any] = dict(self._names)
        try:
            exec(compile("\n    ".join(lines), "<expressions>", "exec"), scope)  # noqa: S102 - text of this class
        except (MemoryError, RecursionError, SyntaxError):
            return None
        run: Callable[..., Any] = scope["run"]
        return run

    def memory(self) -> list[str]:
        """Return the lines that forget the parts of the record before."""
        root = f"get = {_ROOT}.get if isinstance({_ROOT}, dict) else nothing"
        return [root, *(f"{name} = UNKNOWN" for name in self._shared.values())]

    def code(self, node: Node, value: str) -> str:
        """Return the text of an expression of the value with a name."""
        shared = self._shared.get(repr(node)) if value == _ROOT and self._shared else None
        text = self._code(node, value)
        return text if shared is None else f"({shared} if {shared} is not UNKNOWN else ({shared} := {text}))"

    def _code(self, node: Node, value: str) -> str:
        kind, children = node["type"], node["children"]
        if kind in _LEAVES:
            leaf = "get({at!r})" if kind == "field" and value == _ROOT else _LEAVES[kind]
            at = node.get("value")
            low = -at - 1 if isinstance(at, int) else 0  # the place of an item may count from the end
            return leaf.format(value=value, at=at, low=low)
        if kind in ("subexpression", "index_expression", "pipe"):
            return self._chain(children, value)
        if kind == "multi_select_list":
            return f"(None if {value} is None else [{', '.join(self.code(one, value) for one in children)}])"
        if kind == "multi_select_dict":
            pairs = (f"{one['value']!r}: {self.code(one['children'][0], value)}" for one in children)
            return f"(None if {value} is None else {{{', '.join(pairs)}}})"
        if kind == "literal":
            return self.constant(node["value"])
        write = getattr(self, f"_{kind}", None)
        if write is None:
            raise _NotInTables
        return str(write(node, value))

    def _and_expression(self, node: Node, value: str) -> str:
        left, right = node["children"]
        name = self._temporary()
        return f"({self.code(right, value)} if {self._truth(left, value, name)} else {name})"

    def _not_expression(self, node: Node, value: str) -> str:
        return f"(not {self._truth(node['children'][0], value, self._temporary())})"

    def _flatten(self, node: Node, value: str) -> str:
        return f"flat({self.code(node['children'][0], value)})"

    def _temporary(self) -> str:
        return f"part{next(self._numbers)}"

    def _chain(self, parts: list[Node], value: str) -> str:
        """What each part makes of what the parts before it make of a value."""
        *before, last = parts
        if not before:
            return self.code(last, value)
        name = self._temporary()
        base, rest = self._chain(before, value), self.code(last, name)
        if last["type"] == "field":  # the most common chain is a path of names
            return f"({name}.get({last['value']!r}) if isinstance({name} := {base}, dict) else None)"
        if last["type"] in _PASS_ON_NULL:
            return f"({rest} if ({name} := {base}) is not None else None)"
        return f"[{name} := {base}, {rest}][1]"

    def _truth(self, node: Node, value: str, name: str) -> str:
        return f"(({name} := {self.code(node, value)}) or ({name} is not None and is_number({name})))"

    def _or_expression(self, node: Node, value: str) -> str:
        operands: list[Node] = []
        while node["type"] == "or_expression":  # `a || b || c` is nested to the left
            node, right = node["children"]
            operands.append(right)
        last, *between = operands
        tried = [node, *reversed(between)]
        name = self._temporary()
        choices = "".join(f"{name} if {self._truth(one, value, name)} else " for one in tried)
        return f"({choices}{self.code(last, value)})"

    def _comparator(self, node: Node, value: str) -> str:
        left, right = node["children"]
        if left["type"] == "literal":
            left, right = right, left
        literal = right.get("value")
        operator = {"eq": "==", "ne": "!="}.get(node["value"])
        if right["type"] != "literal" or not (literal is None or isinstance(literal, str)) or operator is None:
            raise _NotInTables
        return f"({self.code(left, value)} {operator} {literal!r})"

    def _projection(self, node: Node, value: str) -> str:
        base, part, *condition = node["children"]
        item = self._temporary()
        values = f"those({self.code(base, value)})" if node["type"] == "value_projection" else self.code(base, value)
        pick = "None" if part["type"] in ("identity", "current") else f"lambda {item}: {self.code(part, item)}"
        if not condition:
            return f"each({values}, {pick})"
        return f"each({values}, {pick}, lambda {item}: {self._truth(condition[0], item, self._temporary())})"

    _value_projection = _filter_projection = _projection

    def _function_expression(self, node: Node, value: str) -> str:
        name, arguments = node["value"], node["children"]
        if name == "not_null":
            kept = self._temporary()
            tried = (f"{kept} if ({kept} := {self.code(one, value)}) is not None else " for one in arguments)
            return f"({''.join(tried)}None)"
        if name not in self._functions:
            raise _NotInTables
        if name == "filled" and arguments[0]["type"] == "multi_select_list":
            return self._filled(arguments[0]["children"], value)
        return f"call_{name}({self.code(arguments[0], value)})"

    def _filled(self, nodes: list[Node], value: str) -> str:
        """`filled` of a list, of which only as many items are worked out as are needed."""
        names = [self._temporary() for _ in nodes]
        tried = "".join(
            f"{name} if ({name} := {self.code(one, value)}) is not None and {name} != '' else "
            for name, one in zip(names, nodes, strict=True)
        )
        known = f"({tried}'' if '' in ({', '.join(names)},) else None)"
        return known if value == _ROOT else f"(None if {value} is None else {known})"


def _parts_of_record(node: Node) -> Iterator[Node]:
    """Yield the calls and paths in an expression that are applied to the whole record."""
    kind, children = node["type"], node["children"]
    if kind in ("function_expression", "subexpression", "index_expression", "pipe"):
        yield node
    if kind in ("subexpression", "index_expression", "pipe", "projection", "value_projection", "filter_projection"):
        children = children[:1]
    for child in children:
        if isinstance(child, dict):
            yield from _parts_of_record(child["children"][0] if child["type"] == "key_val_pair" else child)


def is_number(value: object) -> bool:
    """Return whether a value that is false in Python is true in JMESPath: the number 0."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _each(items: object, part: Value | None, condition: Value | None = None) -> list[Any] | None:
    if not isinstance(items, list):
        return None
    if condition is not None:
        items = [item for item in items if condition(item)]
    return [one for one in (items if part is None else map(part, items)) if one is not None]


def _those(items: object) -> list[Any] | None:
    return list(items.values()) if isinstance(items, dict) else None


def _flat(items: object) -> list[Any] | None:
    if not isinstance(items, list):
        return None
    return [one for item in items for one in (item if isinstance(item, list) else (item,))]
