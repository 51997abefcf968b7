"""The model's side of lockstep: the belief, what it is told, and what the reference model permits."""
