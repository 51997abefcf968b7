"""Everything at once, but never more than a cluster must survive."""

from lockstep import PlanBuilder, scenario
from lockstep import storm as draw_storm

USUAL_S = 30.0


@scenario(summary="Faults drawn from the seed, of every kind that the cluster can be put through")
def storm(plan: PlanBuilder) -> None:
    orders = plan.topic("orders", partitions=3, replication=3, min_isr=2)
    plan.write(orders, clients=3)
    plan.read(orders, clients=2)
    draw_storm(plan, orders, plan.seconds or USUAL_S)
    if not plan.beyond:
        plan.expect("no-lost-acks", "held")
