"""Lockstep: the reference model and a live Kafka cluster take the same actions, and are compared after each of them.

A walk acts on one partition of a live cluster, and on groups and transactions beside it. The model keeps every state
that the cluster may be in. The first observation that none of these states explains ends the walk: either Kafka did
what its documented semantics do not permit, or the model is wrong.

Vocabulary
----------
action             What the harness does: a client request, a fault, an admin request, or a wait (`driver.actions`). The
                   code also calls it a step.
observation        What the harness sees: a response, a controller decision, the log of a stopped replica.
decision           One change of the controller's state about the partition or the brokers, as the metadata log (KRaft)
                   or the ZooKeeper transaction log shows it. Every decision is observed; its cause is not.
occasion           What may have caused a decision: an expired session, a broker in shutdown, an election, reassignment
                   or min.insync.replicas that the harness requested. AlterPartition requests of leaders come on top;
                   they are in the model's states.
event              One message to the model, an action or an observation (`model.events`). The events of a walk are
                   enough to repeat its judgement without the cluster.
hidden transition  What brokers do without being observed: a follower fetches, a high watermark advances, a leader
                   sends AlterPartition, a broker applies metadata, a coordinator loads its log.
belief             All states of the reference model that explain every event so far. It is closed under hidden
                   transitions.
place              Index of one part in the state tuple: the controller's metadata, a broker, a fetch in flight, ...
slot               Number of an outstanding request. Each slot has its place in the state.
divergence         An observation that no state of the belief explains.
walk               A sequence of actions on a new topic: drawn from a seed, given by a script, or read from a trace.
trace              A counterexample: the shortest sequence of actions by which a broken variant of the replication
                   protocol, or a mutant of our model, violates an invariant.
control            A model that is wrong in one Kafka rule. It is given the events of a walk, and should diverge.

Grammar of a walk
-----------------
    walk    = Began, { action }                    Began: the partition as the controller created it
    action  = { fact | observation }               one action yields events, in the order in which they are told
    fact    = Surrounded                           links cut, brokers paused, timeouts that may have passed
            | Started | BrokerEnded | ShutdownBegan
                                                   a broker process started or ended, or was asked to shut down
            | Configured                           values of min.insync.replicas that a broker may apply
            | RequestSent | GaveUp                 a request was sent and stays open; its connection broke
            | Identified                           a new transactional id got its producer id and epoch
            | GroupBegan | CoordinatorElected      a group exists; its partition of __consumer_offsets has a new leader
            | GroupAsked | GroupUnanswered         as RequestSent and GaveUp, to a group coordinator
    observation
            = Decided | Exchanged | ResponseArrived | MetadataTold | Found | GroupAnswered

    action -> driver -> events -> tracker -> belief

The driver takes an action on the cluster, collects responses, then polls the controller's decisions. It tells decisions
before responses, since a broker may have responded on the basis of a decision made in the meantime. For each event the
tracker replaces every state of the belief by its permitted successors, and closes the result under hidden transitions.
A fact holds in every state; an observation keeps the states that explain it. If none is left, that is a divergence.

Analyses: how each kind of observation is judged
------------------------------------------------
1. Decision (Decided). From the controller's state before, some sequence of at most six causes must lead to the observed
   state by the model's controller: session expiry, registration, unfencing, shutdown, a granted AlterPartition, or an
   occasion. `model.controller_inference`
2. Immediate response (Exchanged). In some state the broker's replica, given this request, returns exactly this
   response: error, offset, records, high watermark. Covers Produce with acks 0 or 1, Fetch, ListOffsets and
   OffsetForLeaderEpoch. No response is the permitted one to acks=0; a closed connection is its error.
   `model.client_requests`
3. Delayed response (RequestSent, later ResponseArrived). Produce with acks=all waits for the high watermark, a
   transactional request for its coordinator. In some state the request's slot must hold exactly this response. The
   same holds for a response that came while the controller decided something. After a broken connection (GaveUp) the
   request may have been handled, may be handled later, or never: nothing is judged. `model.hidden_transitions`,
   `model.transactions`
4. Metadata response (MetadataTold). It must be the cluster as of a decision that the broker may have applied: brokers
   apply decisions late, but never go back. The live brokers may be those of a later decision, since a broker reads
   them after the partition; in ZooKeeper mode also of an earlier one, since they are propagated separately.
   `model.metadata_responses`
5. Stopped replica (Found). In some state its log start offset, its records with their leader epochs, and the high
   watermark with which it restarts are exactly those on disk. `observers.stopped_replicas`
6. Group response (GroupAnswered). Each group has its own belief: some state has this response in the request's slot.
   Member ids that the coordinator generated become known by it. The elections of the coordinator are facts, read from
   the controller as in 1. `model.groups`
7. Size. A belief with too many states ends the walk as undecided, never as passed. `model.belief`
8. Promises. After a trace the invariants themselves are checked on the events, without the model: committed records
   stay, electable replicas have them, acknowledged records are committed, epochs only rise. `retrace.promises`
9. Power. Each control is given the same events. One that diverges nowhere shows what the walks cannot tell apart.
   `controls`

The verdict on a walk is `violation` after a divergence, `undecided` after 7, otherwise `pass`.

Rooms
-----
retrace      counterexamples, replayed to see whether Kafka follows them
conformance  scripts that bring a cluster to where one claim about Kafka can be checked
walk         random walks: generator, runner, coverage, shrinking; and the session that records and judges walks
controls     wrong models, and where each of them diverged
driver       the cluster's side: actions, requests, faults, administration, observation; `driver.groups` for consumers
observers    the controller's decisions in KRaft and ZooKeeper mode, and the logs of stopped replicas
model        the model's side: belief, tracker, hidden transitions, causes of decisions, permitted responses;
             `model.groups` for consumer groups

A room imports only from the rooms below it; observers and model know nothing of each other.
"""
