"""Plans as data: what a run will do, the builder that scenarios describe them on, and the scenarios themselves."""
