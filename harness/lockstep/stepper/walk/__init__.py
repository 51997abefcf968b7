"""Walks: sequences of actions on one partition of a live cluster, drawn from a seed, run, measured and shrunk.

generator        draws actions at random, those that were seldom taken more often
group_generator  draws consumer actions
runner           takes one walk: creates its topic, runs the actions, restores the cluster
coverage         counts actions, responses, successions of actions, and causes of controller decisions
session          a cluster and a run directory for several walks, and their verdicts
seeds            one walk per seed on a fresh cluster, with a verdict on all of them
shrinker         removes actions from a walk that diverged, as long as it still diverges
"""
