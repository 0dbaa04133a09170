"""Checks that a pattern is matched in time linear in the length of the text, whatever the text.

The check is conservative: it admits literals, sets of characters, groups, alternatives and bounded repetitions, none
inside another, whose lengths have few combinations. Such a pattern reads a bounded number of characters from each place
of a text, and so cannot backtrack over all of it.
"""

import re
from re import _constants, _parser  # type: ignore[attr-defined]  # no other way to the parts of a pattern
from typing import Any

MAX_PATTERN_CHARS = 500
MAX_COMBINATIONS = 256
MAX_REPEATED = 256

_REPEATS = (_constants.MAX_REPEAT, _constants.MIN_REPEAT)
_SINGLE = (_constants.LITERAL, _constants.NOT_LITERAL, _constants.IN, _constants.ANY, _constants.AT)


def check_linear_time(pattern: str, shortest: int = 3) -> re.Pattern[str]:
    """Compiles a pattern of matches that are not too short; a ValueError says what to write instead of another one."""
    if len(pattern) > MAX_PATTERN_CHARS:
        raise ValueError(f"has more than {MAX_PATTERN_CHARS} characters; write a shorter one")
    try:
        tree, compiled = _parser.parse(pattern), re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"is not a regular expression: {error}; escape special characters with a backslash") from error
    if _combinations(tree, repeated=False) > MAX_COMBINATIONS:
        raise ValueError(
            f"has repetitions with more than {MAX_COMBINATIONS} combinations of lengths; write fixed ones, {{8}}"
        )
    if tree.getwidth()[0] < shortest:
        length = f"fewer than {shortest} characters" if shortest > 1 else "no character"
        raise ValueError(f"matches texts of {length}; write a longer pattern")
    return compiled


def _combinations(tree: Any, *, repeated: bool) -> int:  # noqa: ANN401 - parts of patterns have no public type
    """Number of ways to choose the lengths of all repetitions."""
    product = 1
    for operation, argument in tree.data:
        if operation in _SINGLE:
            continue
        if operation in _REPEATS:
            product *= _of_repetition(argument, repeated=repeated)
        elif operation is _constants.BRANCH:
            product *= sum(_combinations(branch, repeated=repeated) for branch in argument[1])
        elif operation is _constants.SUBPATTERN:
            product *= _combinations(argument[3], repeated=repeated)
        else:
            name = _NAMES.get(str(operation), str(operation).lower())
            raise ValueError(f"contains {name}; write it with sets, groups and {{1,64}} only")
    return product


def _of_repetition(argument: Any, *, repeated: bool) -> int:  # noqa: ANN401 - the same
    least, most, body = argument
    if most is _constants.MAXREPEAT or most > MAX_REPEATED:
        raise ValueError(
            f"has a repetition without a bound, or above {MAX_REPEATED}; write {{1,64}} instead of + and *"
        )
    if repeated and most > 1:
        raise ValueError("has a repetition inside a repetition; write the inner one out")
    inside = _combinations(body, repeated=repeated or most > 1)
    return int((most - least + 1) * (inside**most if inside > 1 else 1))


_NAMES = {
    "GROUPREF": "a backreference",
    "GROUPREF_EXISTS": "a condition on a group",
    "ASSERT": "a lookahead or lookbehind",
    "ASSERT_NOT": "a lookahead or lookbehind",
    "POSSESSIVE_REPEAT": "a possessive quantifier",
    "ATOMIC_GROUP": "an atomic group",
}
