"""The cluster's side of consumer groups: consumers of the harness that send group requests.

driver     takes consumer actions on the live cluster
consumers  the harness's own consumers: member id, generation or member epoch, assignment
codec      requests and responses: from the wire to the model and back
situation  what is known of the groups when a walk draws its next action
"""
