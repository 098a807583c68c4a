"""The parameters that published shifts depend on, as the table that holds them states them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from inconvenient.config import (
    CollateralParams,
    EvaluateParams,
    FilterParams,
    ReferenceParams,
    ShiftsParams,
    SplitParams,
    as_record,
)
from inconvenient.errors import InputError

__all__ = ["Settings"]


@dataclasses.dataclass(frozen=True, slots=True)
class Settings:
    """Blocks of params.yaml at the time of publication."""

    split: SplitParams
    reference: ReferenceParams
    shifts: ShiftsParams
    filter: FilterParams
    evaluate: EvaluateParams
    collateral: CollateralParams

    @classmethod
    def of(cls, parameters: Mapping[str, Any]) -> Settings:
        """Make the record of the parameters in a table's provenance; others are ignored.

        Raises
        ------
        InputError
            If a block is absent.
        ConfigError
            If a block has other entries than this version knows.
        """
        names = [field.name for field in dataclasses.fields(cls)]
        absent = [name for name in names if name not in parameters]
        if absent:
            raise InputError(
                "the table of published shifts must state its parameters, but lacks "
                f"{', '.join(absent)}; make it again with this version"
            )
        return as_record(cls, {name: parameters[name] for name in names}, "the published table")
