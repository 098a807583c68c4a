"""Published shifts recomputed from raw tables and row ids, by code that shares none with them."""

from inconvenient.verify.checks import TOLERANCES, Report
from inconvenient.verify.run import PARTS, verify_shifts
from inconvenient.verify.settings import Settings

__all__ = ["PARTS", "TOLERANCES", "Report", "Settings", "verify_shifts"]
