"""Histories from the reference model: correct by construction, or with one bug that is known exactly."""

from lockstep.simulation.bugs import BUGS, bugs_in_words
from lockstep.simulation.planter import Planted
from lockstep.simulation.simulate import PLANTED, simulate
from lockstep.simulation.skeleton import Settings

__all__ = ["BUGS", "PLANTED", "Planted", "Settings", "bugs_in_words", "simulate"]
