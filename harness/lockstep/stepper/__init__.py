"""The reference model and a live cluster, step by step: the first answer that the model does not permit ends a walk."""
