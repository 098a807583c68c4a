"""How the page writes numbers: fixed digits, true minus signs, a dash where there is none."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

__all__ = ["DASH", "FILTERS", "interval_text"]

DASH = "\N{EN DASH}"


def number(value: float | None, digits: int = 3) -> str:
    """Return a number with fixed digits, a true minus sign, a dash for none."""
    if value is None:
        return DASH
    text = f"{value:.{digits}f}"
    if float(text) == 0:
        text = text.lstrip("-")
    return text.replace("-", "\N{MINUS SIGN}")


def signed(value: float | None, digits: int = 3) -> str:
    """Return a number with its sign; one that rounds to zero has none."""
    if value is None:
        return DASH
    text = number(value, digits)
    return f"+{text}" if float(f"{value:.{digits}f}") > 0 else text


def percent(value: float | None, digits: int = 0) -> str:
    """Return a share in per cent."""
    return DASH if value is None else f"{number(100 * value, digits)} %"


def count(value: int | None) -> str:
    """Return a whole number with separators of thousands."""
    return DASH if value is None else f"{value:,}"


def interval_text(low: float | None, high: float | None, digits: int = 3) -> str:
    """Return the ends of an interval in brackets, nothing where there is none."""
    return "" if low is None or high is None else f"[{number(low, digits)}, {number(high, digits)}]"


def pretty(value: Any) -> str:
    """Return data as indented JSON."""
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False)


#: What templates call.
FILTERS: dict[str, Callable[..., str]] = {
    "number": number,
    "signed": signed,
    "percent": percent,
    "count": count,
    "pretty": pretty,
}
