"""The cluster's side of lockstep: actions, requests, faults and observations on a live partition."""
