"""Shifts: their records, their schema, and how they are listed and loaded."""
