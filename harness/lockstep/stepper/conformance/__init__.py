"""Scripts that show, one claim about Kafka after the other, on a live cluster whether it holds."""

from __future__ import annotations

from lockstep.stepper.conformance.registry import CLAIMS, SCRIPTS, Scripted
from lockstep.stepper.conformance.runner import SCRIPT_OVERRIDES, Finding, Ran, run_script

__all__ = ["CLAIMS", "SCRIPTS", "SCRIPT_OVERRIDES", "Finding", "Ran", "Scripted", "run_script"]
