"""Histories from the reference model: correct by construction, or with one bug that is known exactly."""

from harness.simulation.bugs import BUGS, bugs_in_words
from harness.simulation.planting import Planted
from harness.simulation.simulate import PLANTED, simulate
from harness.simulation.skeleton import Settings

__all__ = ["BUGS", "PLANTED", "Planted", "Settings", "bugs_in_words", "simulate"]
