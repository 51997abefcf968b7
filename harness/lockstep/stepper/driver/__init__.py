"""The cluster's side of lockstep: takes steps on a live partition, and reports what is observed to the tracker.

`actions` are the steps and `driver` takes them. `codec` and `transaction_codec` translate requests and responses,
`broker_index` broker ids. `control_plane_faults` holds messages back, `topic_configs` changes configs, `timers` and
`timeouts` bound what time permits. `transactional_client`, `coordinator` and `coordinator_reloads` serve transactions.
"""
