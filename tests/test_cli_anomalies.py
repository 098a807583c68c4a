"""The command that asks about many shifts, against a server that misbehaves."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
import pytest
from model_server import TOKENS, Server, Step, question, serving
from scoring import needs_publication

import inconvenient as ic
from inconvenient.errors import InputError
from inconvenient.llm.suspicion import kept_answers

pytestmark = [needs_publication, pytest.mark.usefixtures("data_folder"), pytest.mark.jit]

Cli = Callable[..., tuple[int, str, str]]

KEY = "sk-recognisable-1234567890"
BUSY = Step(status=429, error="slow down", headers={"Retry-After": "0"})
RUN = ("--shifts", "3", "--profile", "quick", "--variant", "documented", "--variant", "masked")
QUESTIONS = 6


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("INCONVENIENT_LOCAL_KEY", KEY)
    with serving() as running:
        yield running


def local(server: Server) -> tuple[str, ...]:
    return ("--model", "local:tiny", "--url", f"{server.url}/v1")


def test_a_run_through_faults_is_replayed_without_a_server(
    server: Server, cli: Cli, tmp_path: Path
) -> None:
    server.script = [BUSY, Step(status=500, error="no"), Step(cut=True), Step(raw=b"<html>")]
    kept, out = tmp_path / "answers", tmp_path / "out"
    ask = ("anomalies", *local(server), *RUN, "--answers", str(kept), "--at-once", "1")
    status, said, err = cli(*ask, "--json", "--out", str(out))
    assert status == 0, err
    assert len(server.asked) == QUESTIONS + 4
    found = json.loads(said)
    assert [row["variant"] for row in found["questions"]] == ["documented", "masked"]
    assert {"ranking", "other", "difference"} < set(found["differences"][0])
    for row in found["questions"]:
        assert (row["questions"], row["partial"], row["named"]) == (3, 3, 0.1)
        assert (row["tokens_in"], row["tokens_out"]) == (3 * TOKENS[0], 3 * TOKENS[1])
    table = pd.read_parquet(out / "questions.parquet")
    assert (len(table), set(table["named"])) == (QUESTIONS, {1})
    assert set(pd.read_parquet(out / "recalls.parquet")["ranking"]) >= {"documented", "masked"}

    again = ("anomalies", "--model", "local:tiny", *RUN, "--answers", str(kept), "--replay")
    status, replayed, _ = cli(*again, "--json")
    assert status == 0
    assert json.loads(replayed) == found
    assert len(server.asked) == QUESTIONS + 4
    everything = said + err + "".join(path.read_text() for path in kept.rglob("*.json"))
    assert KEY not in everything

    status, _, err = cli("anomalies", "--model", "local:tiny", *RUN[:4], "--seed", "9",
                         "--answers", str(kept), "--replay")  # fmt: skip
    assert status == 1
    assert "of local:tiny was needed" in err


def test_the_tables_are_printed_with_the_paper_below(cli: Cli) -> None:
    status, said, _ = cli("anomalies", "--shifts", "3", "--profile", "quick")
    assert status == 0
    assert "absolute coefficient" in said
    assert re.search(r"paper's best model +overall", said)
    assert "0.374" in said
    assert "Questions" not in said


def test_a_dry_run_sends_nothing(server: Server, cli: Cli) -> None:
    status, said, _ = cli("anomalies", *local(server), *RUN, "--dry-run", "--json")
    assert status == 0
    facts = json.loads(said)
    assert (facts["calls"], facts["kept answers"]) == (QUESTIONS, 0)
    assert facts["tokens of answers, at most"] == QUESTIONS * 1000
    assert facts["tokens of messages, at most"] > QUESTIONS * 1000
    assert facts["cost in dollars, at most"] == 0.0
    assert server.asked == []
    priced = ("--price-in", "1", "--price-out", "2")
    status, said, _ = cli("anomalies", *local(server), *RUN, "--dry-run", "--json", *priced)
    tokens = (facts["tokens of messages, at most"], facts["tokens of answers, at most"])
    assert json.loads(said)["cost in dollars, at most"] == (tokens[0] + 2 * tokens[1]) / 1e6
    status, said, _ = cli("anomalies", "--model", "openai:no-such", *RUN, "--dry-run")
    assert status == 0
    assert "unknown price; give --price-in and --price-out" in said


def test_a_budget_stops_before_it_is_exceeded(server: Server, cli: Cli) -> None:
    # A question costs 25 dollars here by its real tokens, and may cost a hundred times that.
    cost = ("--price-in", "1000000", "--price-out", "2000000", "--at-once", "1")
    status, _, err = cli("anomalies", *local(server), *RUN, *cost, "--max-cost", "1000")
    assert status == 1
    assert "a question to local:tiny may cost $" in err
    assert server.asked == []
    cheap = ("--price-in", "1", "--price-out", "2", "--at-once", "1")
    assert cli("anomalies", *local(server), *RUN, *cheap, "--max-cost", "9")[0] == 0
    assert len(server.asked) == QUESTIONS


def test_what_came_before_a_fatal_fault_is_kept(server: Server, cli: Cli) -> None:
    server.script = [Step(), Step(), Step(status=401, error="bad key")]
    ask = ("anomalies", *local(server), *RUN, "--at-once", "1")
    status, said, err = cli(*ask)
    assert status == 1
    assert said == ""
    assert "INCONVENIENT_LOCAL_KEY" in err
    assert KEY not in err
    before = server.questions()
    assert cli(*ask)[0] == 0
    later = server.questions()[len(before) :]
    # Those behind the fault may have been sent before the run stopped; none with an answer is.
    assert not set(later) & {before[0], before[1]}
    assert len({*before, *later}) == QUESTIONS


def test_a_model_without_an_answer_is_a_failure(
    server: Server, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.script = [Step(status=400, error="never")] * QUESTIONS
    status, said, err = cli("anomalies", *local(server), *RUN, "--json")
    assert status == 1
    assert "no question was answered; the first: refused request" in err
    assert [row["failed"] for row in json.loads(said)["questions"]] == [3, 3]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--replay",), "a model was needed, to be asked or replayed; give --model"),
        (("--model", "embedded:smollm2", "--variant", "loud"), "variant must be one of documented"),
        (("--model", "smollm2"), "a model is named 'provider:name'"),
        (("--model", "smollm2", "--dry-run"), "a model is named 'provider:name'"),
        (("--model", "local:tiny"), "url"),
        (("--model", "local:tiny", "--url", "http://127.0.0.1:9/v1", "--max-cost", "1",
          "--price-in", "1"), "give both --price-in and --price-out"),
    ],
)  # fmt: skip
def test_misuse_is_explained(cli: Cli, options: tuple[str, ...], text: str) -> None:
    status, said, err = cli("anomalies", "--shifts", "3", "--profile", "quick", *options)
    assert (status, said) == (1, "")
    assert text in err


@pytest.mark.slow
def test_a_killed_run_goes_on_without_asking_twice(server: Server, tmp_path: Path) -> None:
    server.script = [Step(), Step(), Step(wait=60.0)]
    program = "import sys; from inconvenient.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", program, "anomalies", *local(server), *RUN]
    command += ["--at-once", "1", "--json"]
    environment = {**os.environ, "INCONVENIENT_STORE": str(tmp_path / "killed")}
    run = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE)
    try:
        deadline = time.monotonic() + 120.0
        while len(server.asked) < 3 and run.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        run.send_signal(signal.SIGKILL)
        run.communicate(timeout=30.0)
    finally:
        run.kill()
    assert len(server.asked) == 3
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    asked = server.questions()
    assert len(asked) == QUESTIONS + 1
    assert asked[2] == asked[3]
    assert len(set(asked)) == QUESTIONS
    assert [row["questions"] for row in json.loads(done.stdout)["questions"]] == [3, 3]


def test_one_shift_is_asked_about_once(server: Server, tmp_path: Path) -> None:
    shift = ic.load_shift(
        ic.list_shifts("birthweight_ucb", "quick", operation="flip")["shift_id"].iloc[0], "quick"
    )
    features = list(shift.train()[0].columns)
    server.reply = lambda body: json.dumps(
        {"ranking": [{"feature": features[3], "reason": "odd"}, {"feature": "f1", "reason": "x"}]}
    )
    url = f"{server.url}/v1"
    reply = ic.rank_suspicious(shift, "local:tiny", url=url)
    assert reply.ranking.features[0] == features[3]
    assert sorted(reply.ranking.features) == sorted(features)
    assert list(reply.ranking.reasons.values()) == ["odd", "x"]
    assert reply.ranking.status == "partial"
    assert (reply.answer.tokens_in, reply.answer.tokens_out) == TOKENS
    assert ic.rank_suspicious(shift, "local:tiny", url=url) == reply
    assert len(server.asked) == 1
    assert shift.shift_id not in question(server.asked[0])
    assert len(list(kept_answers().rglob("*.json"))) == 1
    ic.rank_suspicious(shift, "local:tiny", url=url, answers=tmp_path, variant="masked")
    assert features[3] not in question(server.asked[1])
    with pytest.raises(InputError, match="shift must be a shift or the id of one, got int"):
        ic.rank_suspicious(3, "local:tiny", url=url)


def test_a_folder_that_cannot_be_written_is_told_before_anything_is_sent(
    server: Server, cli: Cli, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    status, said, err = cli("anomalies", *local(server), *RUN, "--answers", str(tmp_path / "file"))
    assert (status, said) == (1, "")
    assert "had to be written" in err
    assert server.asked == []
