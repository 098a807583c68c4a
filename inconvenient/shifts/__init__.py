"""Shifts: their records, their schema, and how published ones are listed and loaded."""

from inconvenient.shifts.loading import list_shifts, load_shift
from inconvenient.shifts.records import Context, Scores, Shift

__all__ = ["Context", "Scores", "Shift", "list_shifts", "load_shift"]
