"""Shifts: their records, their schema, and how published ones are listed, loaded and exported."""

from inconvenient.shifts.export import export_shifts
from inconvenient.shifts.loading import list_shifts, load_shift
from inconvenient.shifts.records import Context, Scores, Shift

__all__ = ["Context", "Scores", "Shift", "export_shifts", "list_shifts", "load_shift"]
