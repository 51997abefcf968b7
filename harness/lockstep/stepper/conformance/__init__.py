"""How claim scripts run on a live cluster; the claims and their scripts are in `lockstep_scenarios.conformance`."""

from __future__ import annotations

from lockstep.stepper.conformance.registry import ClaimScript, find_claims, find_scripts, shown_claims
from lockstep.stepper.conformance.runner import SCRIPT_OVERRIDES, Finding, Ran, run_script

__all__ = [
    "SCRIPT_OVERRIDES",
    "ClaimScript",
    "Finding",
    "Ran",
    "find_claims",
    "find_scripts",
    "run_script",
    "shown_claims",
]
