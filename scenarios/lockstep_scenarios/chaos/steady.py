"""Nothing breaks: what a cluster does when it is left alone, and the one drill that any cluster can be put to."""

from lockstep import PlanBuilder, scenario


@scenario(summary="Clients write and read, and nothing is broken")
def steady(plan: PlanBuilder) -> None:
    orders = plan.topic("orders", partitions=3, replication=3, min_isr=2)
    plan.write(orders, clients=3)
    plan.read(orders, clients=2)
    plan.hold(seconds=10)
    for promise in ("no-lost-acks", "no-duplicates", "real-time-order"):
        plan.expect(promise, "held")
