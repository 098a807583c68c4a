"""PyTorch on one thread and with random numbers of its own, so that a seed decides the result."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from typing import Any

__all__ = ["torch_alone"]


@contextlib.contextmanager
def torch_alone(seed: int) -> Iterator[Any]:
    """Yield the module ``torch``, seeded, on one thread and without warnings.

    Its number of threads and its random state belong to the process; they are what they were once
    the block is left. It imports parts of itself when they are first used, which is where most of
    the warnings come from.
    """
    import torch

    threads = torch.get_num_threads()
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.set_num_threads(1)
        torch.default_generator.manual_seed(seed % 2**63)
        try:
            yield torch
        finally:
            torch.set_num_threads(threads)
