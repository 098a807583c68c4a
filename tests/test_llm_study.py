"""The published answers: what the page says, what they are about, and that a replay agrees."""

from __future__ import annotations

import os
from pathlib import Path

import pandas as pd
import pytest

import inconvenient as ic
import language_models
from inconvenient.llm.anomalies import Anomalies, drawn_shifts, find_anomalies, pose_all
from inconvenient.llm.cache import CachedClient
from inconvenient.llm.prompts import VARIANTS
from inconvenient.store import Store

MODEL = "embedded:smollm2"


@pytest.fixture(scope="module")
def folder(root: Path) -> Path:
    for path, name in (
        (root / "llm_study" / "smollm2" / "recalls.parquet", "llm_study.dvc"),
        (root / "artefacts" / "full" / "publish" / "shifts.parquet", "publish@full split@full"),
    ):
        if not path.is_file():
            text = f"{path.name} is absent; `dvc pull {name}` brings it"
            pytest.fail(text) if os.environ.get("CI") else pytest.skip(text)
    return root / "llm_study"


@pytest.fixture(scope="module")
def published(folder: Path) -> Anomalies:
    return language_models.read_anomalies(folder / "smollm2")


def test_the_page_has_the_tables(root: Path, published: Anomalies) -> None:
    page = (root / "docs" / "language_models.md").read_text(encoding="utf-8")
    assert language_models.tables(published) in page


def test_the_page_has_what_priors_close(root: Path, folder: Path) -> None:
    page = (root / "docs" / "language_models.md").read_text(encoding="utf-8")
    scores = pd.read_parquet(folder / "smollm2" / "priors.parquet")
    assert language_models.prior_table(scores) in page


def test_questions_are_about_the_primary_set(published: Anomalies) -> None:
    drawn = drawn_shifts(300, profile="full", seed=language_models.SEED)
    assert drawn["operation"].value_counts().to_dict() == {
        "amplify": 100,
        "attenuate": 100,
        "flip": 100,
    }
    for variant in VARIANTS:
        own = published.questions[published.questions["variant"] == variant]
        assert sorted(own["shift_id"]) == sorted(drawn["shift_id"])
    features = ic.list_datasets().set_index("name")["features"]
    assert (features[drawn["dataset"]] >= 15).all()
    assert (published.questions["status"] != "failed").all()


@pytest.mark.jit
def test_a_replay_comes_to_the_published_numbers(
    folder: Path, published: Anomalies, tmp_path: Path
) -> None:
    drawn = drawn_shifts(300, profile="full", seed=language_models.SEED).iloc[7::60]
    seed = language_models.SEED
    posed = pose_all(drawn, profile="full", seed=seed)
    client = CachedClient(folder / "answers", model=MODEL)
    store = Store(tmp_path)
    found = find_anomalies(posed, drawn, client, profile="full", seed=seed, store=store, workers=1)
    for name in ("questions", "recalls"):
        mine, theirs = getattr(found, name), getattr(published, name)
        keys = [key for key in ("shift_id", "variant", "ranking", "k") if key in mine]
        theirs = theirs.merge(mine[keys])
        pd.testing.assert_frame_equal(
            mine.sort_values(keys, ignore_index=True), theirs.sort_values(keys, ignore_index=True)
        )
        assert len(mine) >= len(drawn)
