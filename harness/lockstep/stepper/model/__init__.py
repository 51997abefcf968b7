"""The model's side of lockstep: tracks which states of the reference model explain what a cluster does.

`events` are applied by the `tracker` to the `belief`, a set of `state`s that is closed under `hidden_transitions` and
`transactions`. `controller_inference` explains controller decisions, `client_requests` and `metadata_responses` permit
responses, `canonical` merges states, `description` and `divergence` report. `groups`
has the same for consumer groups.
"""
