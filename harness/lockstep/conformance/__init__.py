"""Scripts that show, one claim about Kafka after the other, on a live cluster whether it holds."""

from __future__ import annotations

from harness.lockstep.conformance.running import SCRIPT_OVERRIDES, Finding, Ran, run_script
from harness.lockstep.conformance.table import CLAIMS, SCRIPTS, Scripted

__all__ = ["CLAIMS", "SCRIPTS", "SCRIPT_OVERRIDES", "Finding", "Ran", "Scripted", "run_script"]
