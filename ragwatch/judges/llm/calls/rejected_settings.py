"""Recognizes a rejected request whose cause is a setting, which every call has, and says what to change.

Such a rejection must stop the judge: taken for a fault of its sample, it would lose every sample in turn.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ragwatch.judges.llm.calls.failures import CallError, CallFailure


@dataclass(frozen=True, slots=True)
class Setting:
    """An option that shows in every request.

    Attributes:
        option: Name of the option in the configuration.
        named: Matches the beginning of a message that rejects what the option sends.
        advice: What to write instead.
    """

    option: str
    named: re.Pattern[str]
    advice: str


def with_setting_advice(error: CallError, settings: Sequence[Setting], where: str) -> CallError:
    """The error itself; as `misconfigured`, with advice, where it rejects one of these settings.

    Args:
        error: A failed call.
        settings: What every call sends.
        where: Path of the judge in the configuration.
    """
    if error.reason is not CallFailure.REJECTED:
        return error
    for setting in settings:
        if setting.named.match(error.detail):
            message = f"{error}; set {where}.{setting.option}: {setting.advice}"
            return CallError(CallFailure.MISCONFIGURED, message, limits=error.limits, detail=error.detail)
    return error
