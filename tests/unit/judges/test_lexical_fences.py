"""Fenced prose is prose: an answer that begins with a code fence, or leaves one open, has claims. Code has none."""

from __future__ import annotations

import pytest

from ragwatch.judges.claims.claims import claims_of

DAYS, FREE = "Refunds take five days.", "Shipping is free."


def claims(answer: str) -> list[str]:
    """The claims of an answer."""
    return [answer[claim.start : claim.end] for claim in claims_of(answer).claims]


@pytest.mark.parametrize(
    "answer",
    [
        f"```\n{DAYS}\n{FREE}\n```",
        f"```\n{DAYS} {FREE}",
        f"```markdown\n- {DAYS}\n- {FREE}\n```",
        f"``` {DAYS}\n{FREE}",
        f"~~~text\n{DAYS}\n\n{FREE}\n~~~",
        f"{DAYS}\n```\n{FREE}",
        f"```python\nprint(days)\n\n{DAYS}\n{FREE}",
    ],
)
def test_fenced_prose_is_prose(answer: str) -> None:
    """Whatever fence an answer begins with, or leaves open, its sentences are its claims."""
    assert claims(answer) == [DAYS, FREE]


@pytest.mark.parametrize(
    "code",
    [
        "```python\ndef days(refund):\n    return refund.days + 1\n```",
        "```\npip install ragwatch\n```",
        "```\n$ ls -la\ntotal 4\n```",
        '```json\n{"answer": "Refunds take five days."}\n```',
        "```sql\nSELECT days FROM refunds WHERE free = 1;\n```",
        "~~~\nfor day in days: print(day)\n~~~",
        "```\n```",
    ],
)
def test_code_is_no_claim(code: str) -> None:
    """Code between sentences, at the beginning and at the end stays out."""
    assert claims(f"{DAYS}\n{code}\n{FREE}") == [DAYS, FREE]
    assert claims(f"{code}\n{DAYS}") == [DAYS]
    assert claims(f"{DAYS}\n{code.rsplit(chr(10), 1)[0]}") == [DAYS]
