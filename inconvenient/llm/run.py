"""Asks many questions, several at a time, and says what became of each."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextvars import ContextVar

from inconvenient.errors import ModelError
from inconvenient.llm.cache import Answer, Client, Request

__all__ = ["IN_A_ROW", "ask_all", "pause"]

#: Questions in a row without an answer after which a run stops: the model is not there.
IN_A_ROW = 10

#: Set once the run has ended to which a thread belongs; None outside :func:`ask_all`.
_ENDED: ContextVar[threading.Event | None] = ContextVar("ended", default=None)


def pause(seconds: float) -> bool:
    """Wait before another try; return whether to make it: not once the run has ended.

    A run that was interrupted waits for what is under way, and must not pay for more.
    """
    ended = _ENDED.get()
    if ended is None:
        time.sleep(seconds)
        return True
    return not ended.wait(seconds)


def ask_all(
    requests: Sequence[Request],
    client: Client,
    *,
    done: Callable[[int, int], None] | None = None,
) -> list[Answer | ModelError]:
    """Ask a model everything, as many questions at a time as its client bears.

    Parameters
    ----------
    requests : sequence of Request
        Begun in this order.
    client : Client
        A :class:`~inconvenient.llm.cache.CachedClient`, if no answer is to be lost: it keeps each
        as it comes, and an interrupted run goes on behind the last.
    done : callable, optional
        Told after each answer how many of how many there are.

    Returns
    -------
    list of Answer or ModelError
        In the order of ``requests``, whatever the number at a time: the answer, or why there is
        none. Such a question is asked again in the next run.

    Raises
    ------
    ModelError
        If all other questions would fail alike, or ten in a row had no answer.
    """
    outcomes: list[Answer | ModelError | None] = [None] * len(requests)
    failed, ended = 0, threading.Event()
    # Threads have a context of their own, which the initializer sets.
    with ThreadPoolExecutor(client.at_once, initializer=_ENDED.set, initargs=(ended,)) as threads:
        futures = {threads.submit(client.ask, one): i for i, one in enumerate(requests)}
        try:
            for count, future in enumerate(as_completed(futures), start=1):
                error = future.exception()
                if error is not None and not isinstance(error, ModelError):
                    raise error
                outcomes[futures[future]] = future.result() if error is None else error
                failed = 0 if error is None else failed + 1
                if error is not None and (error.fatal or failed == IN_A_ROW):
                    raise error
                if done is not None:
                    done(count, len(requests))
        finally:
            ended.set()
            threads.shutdown(wait=False, cancel_futures=True)
    return [outcome for outcome in outcomes if outcome is not None]
