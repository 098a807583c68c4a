"""The table of published shifts: what is joined, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import yaml
from publications import HASH, publication_frames, published_frame, split_frame

from inconvenient.errors import InputError
from inconvenient.shifts.publication import publish
from inconvenient.shifts.schema import PUBLISHED_COLUMNS, baselines_of, validate
from inconvenient.stages.run import Run
from inconvenient.store import canonical_json, write_frame

DATASETS = [("binary_a", "binary"), ("regression_a", "regression")]
HASHES = {name: HASH for name, _ in DATASETS}
NAMES = ("shifts/shifts", "filter/filter", "evaluate/default", "collateral/collateral")

Frames = dict[str, pd.DataFrame]


@pytest.fixture
def frames() -> Frames:
    return publication_frames(DATASETS)


def joined(frames: Frames, hashes: dict[str, str] = HASHES) -> pd.DataFrame:
    return publish(*(frames[name] for name in NAMES), hashes)


def test_each_column_is_of_the_shift_that_it_stands_at(frames: Frames) -> None:
    rng = np.random.default_rng(1)
    straight = joined(frames)
    # whatever the order of the tables
    mixed = {k: v.sample(frac=1, random_state=rng.integers(99)) for k, v in frames.items()}
    pd.testing.assert_frame_equal(joined(mixed), straight)
    filters = frames["filter/filter"].set_index("shift_id")
    assert straight["shift_id"].tolist() == sorted(filters.index[filters["published"]])
    assert 0 < len(straight) < len(filters)
    by_id = straight.set_index("shift_id")
    default = frames["evaluate/default"].set_index(["shift_id", "baseline"])
    shifts = frames["shifts/shifts"].set_index("shift_id")
    collateral = frames["collateral/collateral"].set_index("shift_id")
    for shift_id in by_id.index[[1, len(by_id) // 2, -1]]:
        row = by_id.loc[shift_id]
        for baseline in ("linear", "lightgbm"):
            scores = default.loc[(shift_id, baseline)]
            assert row[f"{baseline}_id"] == scores["score_id"]
            assert row[f"{baseline}_control"] == scores["score_control"]
            assert row[f"{baseline}_control_sd"] == scores["control_sd"]
            assert row[f"{baseline}_ood"] == scores["score_ood"]
        for name in ("retained", "retained_paper", "gap", "gap_paper"):
            assert row[name] == filters.loc[shift_id, name]
        assert row["filter_linear_ood"] == filters.loc[shift_id, "linear_ood"]
        assert row["filter_control_sd"] == filters.loc[shift_id, "control_sd"]
        assert row["rows"] == shifts.loc[shift_id, "rows"]
        assert row["collateral"] == collateral.loc[shift_id, "collateral"]
        assert row["data_hash"] == HASH


def test_scores_of_a_failed_baseline_are_missing_and_the_shift_is_published(frames: Frames) -> None:
    failed = frames["evaluate/default"].iloc[0]
    row = joined(frames).set_index("shift_id").loc[failed["shift_id"]]
    assert failed["status"] != "ok"
    assert np.isnan(row[f"{failed['baseline']}_ood"])
    assert row[f"{failed['baseline']}_id"] == failed["score_id"]
    assert np.isfinite(row["linear_ood"])


@pytest.mark.parametrize("names", [[], ["forest"], ["a", "b_c", "linear"]])
def test_baselines_are_those_of_the_profile(frames: Frames, names: list[str]) -> None:
    known = frames["evaluate/default"]
    one = known[known["baseline"] == "linear"]
    scored = [one.assign(baseline=name) for name in names] or [one[:0]]
    frames["evaluate/default"] = pd.concat(scored)
    out = joined(frames)
    assert [name for name in baselines_of(out) if not name.startswith("filter_")] == names
    for name in names:
        assert baselines_of(out)[name] == tuple(
            f"{name}_{part}" for part in ("id", "control", "control_sd", "ood")
        )
    filters = [c for c in frames["filter/filter"] if c.endswith("_ood")]
    assert {f"{model}_ood" for model in set(baselines_of(out)) - set(names)} == {
        f"filter_{name}" for name in filters
    }
    assert len(filters) == 2
    assert set(PUBLISHED_COLUMNS) <= set(out)


@pytest.mark.parametrize("name", ["shifts/shifts", "evaluate/default", "collateral/collateral"])
def test_tables_of_several_versions_are_refused(frames: Frames, name: str) -> None:
    victim = joined(frames)["shift_id"].iloc[2]
    whole = frames[name]
    frames[name] = whole[whole["shift_id"] != victim]
    with pytest.raises(
        InputError, match=rf"lacks 1 of \d+ published shifts, the first.*'{victim}'"
    ):
        joined(frames)
    frames[name] = pd.concat([whole, whole[whole["shift_id"] == victim]])
    with pytest.raises(InputError, match=f"holds '{victim}' more than once"):
        joined(frames)


def test_nothing_to_publish_and_an_unknown_dataset(frames: Frames) -> None:
    with pytest.raises(InputError, match="'data_hash' must hold str, got nan at 'regression_a"):
        joined(frames, {"binary_a": HASH})
    frames["filter/filter"]["published"] = False
    with pytest.raises(InputError, match=r"none of \d+ is retained; widen the grid"):
        joined(frames)


def changed(column: str, value: object, at: int = 1) -> pd.DataFrame:
    out = published_frame(DATASETS)
    values = out[column].astype(object)
    values.iat[at] = value
    return out.assign(**{column: values})


@pytest.mark.parametrize(
    ("frame", "text"),
    [
        (changed("retained", "yes"), "'retained' must hold bool, got 'yes'"),
        (changed("linear_ood", "low"), "'linear_ood' must hold float64, got 'low'"),
        (changed("size", 5).drop(columns="linear_control"), "lacks linear_control"),
        (changed("size", 5).drop(columns="filter_linear_id"), "lacks filter_linear_id"),
        (changed("size", 5).drop(columns="filter_control_sd"), "lacks filter_control_sd"),
        (changed("size", 5).assign(note=1), "unknown columns note"),
        (
            changed("size", 5).assign(retained=False, retained_paper=False),
            "retained by one of the two flags, got 'binary_a",
        ),
        (changed("rows_hash", published_frame(DATASETS)["rows_hash"].iloc[0]), "distinct row sets"),
        (changed("outcome", "unmet"), "published must be verified"),
    ],
)
def test_frames_that_break_the_schema(frame: pd.DataFrame, text: str) -> None:
    with pytest.raises(InputError, match=text):
        validate(frame, "published")


def test_the_stage_writes_what_the_file_depends_on(
    root: Path, tmp_path: Path, frames: Frames
) -> None:
    from inconvenient.stages.publish import PARAMETERS, main

    (tmp_path / "params.yaml").write_bytes((root / "params.yaml").read_bytes())
    folder = tmp_path / "artefacts" / "quick"
    write_frame(folder / "split" / "split.parquet", split_frame([name for name, _ in DATASETS]))
    datasets = pd.DataFrame({"dataset": list(HASHES), "hash": list(HASHES.values())})
    write_frame(folder / "split" / "datasets.parquet", datasets)
    for name in NAMES:
        write_frame(folder / f"{name}.parquet", frames[name])
    main(Run(tmp_path, "publish", "quick", 1))
    written = folder / "publish" / "shifts.parquet"
    back = validate(pd.read_parquet(written), "published")
    pd.testing.assert_frame_equal(back, joined(frames), check_dtype=False)
    facts = yaml.safe_load(pq.read_schema(written).metadata[b"inconvenient"])
    assert set(facts["inputs"]) == {*NAMES, "split/datasets", *(f"data/{n}" for n in HASHES)}
    assert set(facts["parameters"]) == set(PARAMETERS)
    assert (facts["stage"], facts["profile"]) == ("publish", "quick")
    params = yaml.safe_load((root / "params.yaml").read_text(encoding="utf-8"))
    assert canonical_json(facts["parameters"]["filter"]) == canonical_json(params["filter"])
