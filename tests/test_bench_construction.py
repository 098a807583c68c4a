"""The profile of the construction names functions that are there."""

from __future__ import annotations

import importlib.util
from pathlib import Path


def test_every_function_that_is_timed_exists(root: Path) -> None:
    path = root / "bench" / "construction.py"
    spec = importlib.util.spec_from_file_location("construction", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    spots = [spot for part in module.SPOTS.values() for spot in part]
    assert len(spots) > 20
    for spot in spots:
        holder, name = module.found(spot)
        assert callable(getattr(holder, name, None)), spot
