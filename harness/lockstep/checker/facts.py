"""The two fact tables that every guarantee is a predicate over, each computed once.

placements   one row per (log, offset, value): the send acknowledged there, the first read there, and what is known of
             the value and of its neighbours in the log. A send without an offset is a row with offset null.
polls        one row per (operation, log): the offsets a poll returned of one partition, and the poll before it.

A log is one partition of one topic of one run. Windows run over these facts, never over raw records, and look back in
descending order of offset where they need what comes later: a frame that ends at the end of the log is quadratic.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from lockstep.checker.conditions import Conditions
from lockstep.checker.sources import LOG, Sources, constants, run_of
from lockstep.history.schema import SEQUENCE_BITS, Outcome, Role
from lockstep_model.guarantees import ACKS_ALL

_NEVER = f"{(1 << 63) - 1}L"

NEW_SPAN = ("assign", "seek")
"""Operations after which a reader may read lower offsets again."""


# What is known of one record, or of many by `bit_or`: small facts in the width of one column.
_ACKED, _FAILED, _READ, _FINAL, _IDEMPOTENT, _NOT_IDEMPOTENT, *_ACKS = (1 << bit for bit in range(9))
_ASKED: dict[int, int] = dict(zip((ACKS_ALL, 0, 1), _ACKS, strict=True))
"""The fact that a writer asked for these acks; `owes` holds those of them for which its log must keep records."""


def placements(spark: SparkSession, sources: Sources, conditions: Sequence[Conditions]) -> DataFrame:
    """Columns, after the key:

    acked, send_op                       of the send acknowledged there (of any send, where offset is null)
    was_read, read_op                    whether a consumer read it there, and in which operation first
    proven, log_start, log_end           whether the log was read to its end, and its bounds then
    at_end, gone                         the final reader saw it there, or proved that it is not there
    present                              it is or was there: read, or acknowledged and not gone
    keeps                                whether its log must keep what was read or acknowledged with acks=all
    firm, weak                           firm: retention is guaranteed to its producer or to a consumer that read it;
                                         weak: guaranteed to neither; both false: unknown
    sent_op, sent_invoke_ns, failed, idempotent, not_idempotent
                                         of the send of this value, wherever it went; null or false if there was none
    survived                             the final reader saw the value, wherever
    given_up                             while the value was on its way, its writer gave up another one
    copy_log, copy_offset, copy_op, copy_at_end
                                         the last place where the value is present
    beyond                               the recorder died, and may have died before it could record this send
    same_offset                          there is another value at this offset: other_value, other_op, and whether it
                                         is other_firm or other_weak
    later_return_ns                      the first return of an acknowledged value that stays at a higher offset
    """
    facts = _with_value(_with_log(_placed(spark, sources), spark, sources, conditions))
    return _with_given_up(_named(_with_neighbours(_with_beyond(facts, spark, sources))), spark, sources)


def _placed(spark: SparkSession, sources: Sources) -> DataFrame:
    columns = ("topic", "partition", "offset", "value", "op", "process", "invoke_ns", "return_ns", "outcome")
    nothing = "cast(null as bigint)"
    ok = f"outcome = {Outcome.OK.value}"
    sent = sources.read(spark, "records-sent", *columns).selectExpr(
        "r",
        "process",
        f"{LOG} as log",
        f"if({ok}, offset, null) as offset",
        "value",
        f"if({ok}, {_ACKED}, if(outcome = {Outcome.FAIL.value}, {_FAILED}, 0)) as how",
        "op as send_op",
        f"{nothing} as read_op",
        "invoke_ns",
        f"if({ok}, return_ns, null) as return_ns",
    )
    read = sources.read(spark, "records-read", *columns).selectExpr(
        "r",
        "process",
        f"{LOG} as log",
        "offset",
        "value",
        f"{_READ} as how",
        f"{nothing} as send_op",
        "op as read_op",
        f"{nothing} as invoke_ns",
        f"{nothing} as return_ns",
    )
    return (
        sent.unionAll(read)
        .join(sf.broadcast(_promises(spark, sources)), ["r", "process"], "left")
        # Hardly any two rows of a task have the same key, so the exchange comes first, and serves `_with_value` too.
        .repartition("r", "value")
        .groupBy("r", "log", "offset", "value")
        .agg(
            sf.expr("bit_or(how | coalesce(promised, 0)) as facts"),
            sf.expr("min(send_op) as send_op"),
            sf.expr("min(read_op) as read_op"),
            sf.expr("min(invoke_ns) as invoke_ns"),
            sf.expr("min(return_ns) as return_ns"),
        )
    )


def _promises(spark: SparkSession, sources: Sources) -> DataFrame:
    rows = []
    for process in sources.processes:
        acks = 0 if process.acks is None else _ASKED.get(process.acks, 0)
        once = 0 if process.idempotent is None else _IDEMPOTENT if process.idempotent else _NOT_IDEMPOTENT
        final = _FINAL if process.role == Role.FINAL else 0
        rows.append((process.r, process.process, acks | once | final))
    return constants(spark, {"r": "int", "process": "int", "promised": "int"}, rows)


def _with_log(placed: DataFrame, spark: SparkSession, sources: Sources, conditions: Sequence[Conditions]) -> DataFrame:
    """Add the bounds of each log that was read to its end, and the acks for which it owes that records stay."""
    ends = {end.log: (end.log_start, end.position) for end in sources.ends}
    rows: list[tuple[int | None, ...]] = []
    for log in sorted(ends.keys() | {log for condition in conditions for log in condition.elections}):
        owes = sum(asked for acks, asked in _ASKED.items() if conditions[run_of(log)].stays(log, acks))
        rows.append((log, *ends.get(log, (None, None)), owes))
    columns = {"log": "bigint", "log_start": "bigint", "log_end": "bigint", "log_owes": "int"}
    logs = constants(spark, columns, rows)
    gone = f"coalesce(facts & {_FINAL} = 0 and offset >= log_start, false)"
    return placed.join(sf.broadcast(logs), "log", "left").selectExpr(
        "*",
        f"coalesce(log_owes, {_ASKED[ACKS_ALL]}) as owes",
        f"{gone} as gone",
        f"offset is not null and (facts & {_READ} != 0 or not {gone}) as present",
    )


def _with_value(facts: DataFrame) -> DataFrame:
    """Add what is known of a value at any offset: few rows each, sorted so that the last one is a copy, if any."""
    whole = "over (partition by r, value order by present, log, offset"
    whole += " rows between unbounded preceding and unbounded following)"
    return facts.selectExpr(
        "*",
        f"min(send_op) {whole} as sent_op",
        f"min(invoke_ns) {whole} as sent_invoke_ns",
        f"min(return_ns) {whole} as acked_ns",
        f"bit_or(facts) {whole} as value_facts",
        f"last(log) {whole} as copy_log",
        f"last(offset) {whole} as copy_offset",
        f"last(coalesce(send_op, read_op)) {whole} as copy_op",
        f"last(facts & {_FINAL} != 0) {whole} as copy_at_end",
    ).drop("invoke_ns")


def _with_beyond(facts: DataFrame, spark: SparkSession, sources: Sources) -> DataFrame:
    """Mark values that a crashed recorder may have sent without having recorded it."""
    crashed = [r for r, history in enumerate(sources.histories) if not history.meta.sealed]
    if not crashed:
        return facts.withColumn("beyond", sf.expr("false"))
    of_crashed = sf.col("r").isin(crashed)
    last = (
        sources.read(spark, "records-sent", "process", "value")
        .where(of_crashed)
        .groupBy("r", "process")
        .agg(sf.max("value").alias("last"))
    )
    writers = (
        sources.read(spark, "processes", "process")
        .where(of_crashed)
        .join(sf.broadcast(last), ["r", "process"], "left")
        .selectExpr("r as writer_r", "process as writer", "coalesce(last, -1) as last")
    )
    mine = sf.expr(f"r = writer_r and shiftright(value, {SEQUENCE_BITS}) = writer")
    return (
        facts.join(sf.broadcast(writers), mine, "left")
        .withColumn("beyond", sf.expr("coalesce(value > last, false)"))
        .drop("writer_r", "writer", "last")
    )


def _with_neighbours(facts: DataFrame) -> DataFrame:
    """Firm values first, so that of three at one offset two firm ones are neighbours."""
    acked, read = f"facts & {_ACKED} != 0", f"facts & {_READ} != 0"
    committed_stays = f"owes & {_ASKED[ACKS_ALL]} != 0"
    firm = f"({read} and {committed_stays} or {acked} and facts & owes != 0)"
    weak = f"({read} and not {committed_stays} or facts & {sum(_ACKS)} != 0 and facts & owes = 0)"
    descending = f"partition by log order by offset desc, {firm} desc, value"
    stays = f"{acked} and {firm} and not gone"
    return facts.selectExpr(
        "*",
        f"{firm} as firm",
        f"{weak} as weak",
        f"lag(offset) over ({descending}) = offset as same_offset",
        f"lag(value) over ({descending}) as other_value",
        f"lag(coalesce(send_op, read_op)) over ({descending}) as other_op",
        f"lag({firm}) over ({descending}) as other_firm",
        f"lag({weak}) over ({descending}) as other_weak",
        f"min(if({stays}, return_ns, null))"
        f" over ({descending} rows between unbounded preceding and 1 preceding) as later_return_ns",
    )


def _named(facts: DataFrame) -> DataFrame:
    """Give every fact its name, last of all: until here they travel as bits."""
    return facts.selectExpr(
        "*",
        f"facts & {_ACKED} != 0 as acked",
        f"facts & {_READ} != 0 as was_read",
        f"facts & {_FINAL} != 0 as at_end",
        f"owes & {_ASKED[ACKS_ALL]} != 0 as keeps",
        f"value_facts & {_FINAL} != 0 as survived",
        f"value_facts & {_FAILED} != 0 and value_facts & {_ACKED} = 0 as failed",
        f"value_facts & {_IDEMPOTENT} != 0 as idempotent",
        f"value_facts & {_NOT_IDEMPOTENT} != 0 as not_idempotent",
        "log_end is not null as proven",
    )


def _with_given_up(facts: DataFrame, spark: SparkSession, sources: Sources) -> DataFrame:
    """Mark values that were on their way when their writer gave up another one."""
    mine = sf.expr(f"r = writer_r and shiftright(value, {SEQUENCE_BITS}) = writer")
    # A value without an acknowledgement is itself one of those given up.
    others = f"span.start_ns < coalesce(acked_ns, {_NEVER}) and span.end_ns > sent_invoke_ns"
    others += " and span.sends > if(acked_ns is null, 1, 0)"
    return (
        facts.join(sf.broadcast(_given_up(spark, sources)), mine, "left")
        .withColumn("given_up", sf.expr(f"coalesce(exists(spans, span -> {others}), false)"))
        .drop("writer_r", "writer", "spans")
    )


def _given_up(spark: SparkSession, sources: Sources) -> DataFrame:
    """Per producer, the merged time spans in which a send of unknown outcome was under way."""
    sent = sources.read(spark, "records-sent", "process", "invoke_ns", "return_ns", "outcome")
    in_time = "over (partition by writer_r, writer order by start_ns"
    return (
        sent.where(f"outcome = {Outcome.UNKNOWN.value}")
        .selectExpr(
            "r as writer_r",
            "process as writer",
            "invoke_ns as start_ns",
            f"coalesce(return_ns, {_NEVER}) as end_ns",
        )
        .selectExpr("*", f"max(end_ns) {in_time} rows between unbounded preceding and 1 preceding) as before_ns")
        .selectExpr("*", f"count_if(start_ns > before_ns) {in_time} rows unbounded preceding) as span")
        .groupBy("writer_r", "writer", "span")
        .agg(sf.expr("min(start_ns) as start_ns"), sf.expr("max(end_ns) as end_ns"), sf.expr("count(*) as sends"))
        .groupBy("writer_r", "writer")
        .agg(sf.expr("collect_list(struct(start_ns, end_ns, sends)) as spans"))
    )


def returned(spark: SparkSession, sources: Sources, moments: Sequence[tuple[int, int]]) -> DataFrame:
    """The acknowledged sends of these (log, return_ns): log, return_ns, op, offset, value."""
    wanted = constants(spark, {"log": "bigint", "return_ns": "bigint"}, moments)
    sent = sources.read(spark, "records-sent", "topic", "partition", "op", "offset", "value", "return_ns", "outcome")
    return (
        sent.where(f"outcome = {Outcome.OK.value}")
        .selectExpr(f"{LOG} as log", "return_ns", "op", "offset", "value")
        .join(sf.broadcast(wanted), ["log", "return_ns"])
    )


def polls(spark: SparkSession, sources: Sources) -> DataFrame:
    """Columns: r, process, op, log, lowest, highest, in_order, and `before` (op, highest), the poll before in its span.

    `in_order` is certain where offset minus position is constant; where it is not, the poll has gaps or goes backwards,
    and only `steps` can tell which.
    """
    read = sources.read(
        spark, "records-read", "process", "op", "topic", "partition", "offset", "position", "invoke_ns"
    ).selectExpr("r", "process", "op", f"{LOG} as log", "offset", "position", "invoke_ns")
    polled = read.groupBy("op", "log").agg(  # the operation and the log determine the run and the process
        sf.expr("min(r) as r"),
        sf.expr("min(process) as process"),
        sf.expr("min(invoke_ns) as invoke_ns"),
        sf.expr("min(offset) as lowest"),
        sf.expr("max(offset) as highest"),
        sf.expr("min(offset - position) = max(offset - position) as in_order"),
    )
    spans = (
        sources.read(spark, "operations", "process", "op", "kind", "invoke_ns")
        .where(sf.col("kind").isin(*NEW_SPAN))
        .selectExpr(
            "op",
            "cast(null as bigint) as log",
            "r",
            "process",
            "invoke_ns",
            "cast(null as bigint) as lowest",
            "cast(null as bigint) as highest",
            "true as in_order",
        )
    )
    in_time = "order by invoke_ns, op"
    return (
        polled.unionAll(spans)
        .selectExpr("*", f"count_if(log is null) over (partition by r, process {in_time}) as span")
        .where("log is not null")
        .selectExpr("*", f"lag(struct(op, highest)) over (partition by r, process, span, log {in_time}) as before")
    )


def steps(spark: SparkSession, sources: Sources, suspects: DataFrame) -> DataFrame:
    """The records of suspect polls (r, op, log), each with the offset before it in the poll."""
    read = sources.read(spark, "records-read", "process", "op", "topic", "partition", "offset", "position", "value")
    return (
        read.selectExpr("r", "process", "op", f"{LOG} as log", "offset", "position", "value")
        .join(suspects, ["r", "op", "log"], "left_semi")
        .selectExpr("*", "lag(offset) over (partition by r, op, log order by position) as offset_before")
    )
