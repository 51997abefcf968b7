"""The checker: a history in, a verdict out. It reads a run directory (docs/run-directory.md) and never sees a cluster.

Vocabulary
    run           one run directory; many can be judged in one set of Spark jobs, each known by its place `r`
    process       one client of the run: a writer, a reader or the final reader; never an operating-system process
    operation     one call by a process: a send, a poll, an assign, a seek
    outcome       ok, fail (certainly without effect) or unknown (no response, or one that leaves it open)
    acknowledged  of a send: its outcome is ok, and the Produce response may have told an offset
    value         the unique id of a record's content, `process << 40 | sequence`; null if its bytes are not the run's
    log           one partition of one topic of one run; a topic that was deleted and created again is another topic
    placement     one value at one offset of one log: whether a send was acknowledged there, whether it was read there
    final read    the last phase, after all faults are healed: each log read up to its leader's log end offset. A log
                  for which that is on record is *proven*: what was not read then is not in it
    firm, weak    firm: Kafka owes the producer or a reader that the record stays at its offset; weak: it owes that to
                  neither; both false: unknown
    anomaly       a row of the facts that breaks a guarantee, with the operations that show it
    effect        what an anomaly means under the conditions of the run: violated, permitted or undecided

Grammar of a history (columns: `lockstep.history.schema`)
    history      = process* operation* record* observation* fault*
    process      = number, role, acks, idempotent, isolation, ...       as its client was configured
    operation    = op, process, kind, invoke_ns, [return_ns], outcome   without return_ns the outcome is unknown
    send         = operation, one sent record: log, value, [offset]     on disk before the client has the record
    poll         = operation, read records: log, offset, value          in the order in which the poll returned them
    assign, seek = operation                                            lower offsets may be read after it
    observation  = metadata: leader, leader epoch and ISR               as one broker answered a Metadata request
                 | final-read: log start, log end, position             proves the log if position reaches log end
    fault        = inject: target, [proof]; later healed: proof         without proof it may have had no effect
    All times are monotonic nanoseconds of the machine that ran the harness, so those of all processes are comparable.

Analyses, in this order
     1. Opening (`sources`). A damaged table is an error. A history without a seal is one whose recorder died: a value
        that was read and may have been sent after the last line on disk is then undecided, and no phantom.
     2. Conditions (`conditions`). From the plan, the spec, the observations and the proofs of faults: replication
        factor, min.insync.replicas, unclean elections, ELR; changes of leader per partition, brokers crashed at one
        time, and ISRs of which every member lost the end of its log.
     3. Requirements (`lockstep_model.guarantees`). For each log and each writer's settings: the guarantee must hold,
        may be broken, or does not apply, and why.
     4. Facts (`facts`). Two tables, each computed once: `placements` by (log, offset, value), `polls` by (op, log).
     5. Detectors (`detectors`). Predicates over the facts, as a table. Each anomaly is given its effect here.
        5.1   lost-ack             no-lost-acks          acknowledged; its log is proven, and no final read found it
        5.2   inconsistent-offset  one-value-per-offset  two values at one offset, each read or acknowledged there
        5.3   moved-ack            one-value-per-offset  acknowledged at an offset, and in the end only at another
        5.4   duplicate            no-duplicates         one value at two offsets, or in two partitions
        5.5   phantom              no-phantoms           read, and never sent
        5.6   failed-write-read    no-phantoms           read, though its send certainly failed
        5.7   foreign-bytes        no-phantoms           read, and not what this run wrote to this topic
        5.8   reordered            real-time-order       before a record that was acknowledged before it was sent
        5.9   backwards-poll       monotonic-reads       a poll returned offsets that an earlier poll had passed
        5.10  backwards-in-poll    monotonic-reads       the same within one poll whose offsets are not consecutive
     6. Evidence (`evidence`). All anomalies are counted; of each guarantee the first 20 in a total order are shown.
     7. Status of a guarantee (`decide`). *violated* if an anomaly is. Else *undecided* if a table is torn, what it is
        checked on is missing (acknowledgements, reads, for no-lost-acks a proven log), or an anomaly is undecided.
        Else *permitted* if there is an anomaly, *not-applicable* if no operation was owed it, otherwise *held*.
     8. Expectations (`decide.compare`). The status that the scenario is there to show, beside the one found.
     9. Verdict (`decide.overall`). *violation* if a guarantee is violated; else *undecided* if one is undecided, a
        fault has no proof, or an expectation is not met; else *pass*.
    10. Series (`statistics`, `timeline`). Throughput, latency, leaders and faults over time, for the report.

The offsets of a partition are a total order of its appends. So 5.8, with one offset for each value (5.2 to 5.4), is all
that linearizability of appends needs, and no order has to be searched for.

Not analysed yet: transactions and consumer groups, whose guarantees are `lockstep_model.guarantees.FURTHER`.

Spark is imported only when something here is used.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lockstep.checker.judgement import SERIES, VERDICT, judge
    from lockstep.checker.spark import SparkStarter, spark_session, start_spark, stop_spark
    from lockstep.checker.verdict import Anomaly, GuaranteeResult, OperationRef, Series, Verdict

SAMPLE = Path(__file__).with_name("sample")
"""The run directory of a small legal history, as `lockstep simulate --seed 1 --ops 1000 --partitions 1` makes it."""

_HOME = {
    "SERIES": "judgement",
    "VERDICT": "judgement",
    "judge": "judgement",
    "SparkStarter": "spark",
    "spark_session": "spark",
    "start_spark": "spark",
    "stop_spark": "spark",
    "Anomaly": "verdict",
    "GuaranteeResult": "verdict",
    "OperationRef": "verdict",
    "Series": "verdict",
    "Verdict": "verdict",
}

__all__ = [
    "SAMPLE",
    "SERIES",
    "VERDICT",
    "Anomaly",
    "GuaranteeResult",
    "OperationRef",
    "Series",
    "SparkStarter",
    "Verdict",
    "judge",
    "spark_session",
    "start_spark",
    "stop_spark",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
