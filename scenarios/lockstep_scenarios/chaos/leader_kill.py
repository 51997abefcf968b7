"""The first drill: lose a leader without warning."""

from lockstep import PlanBuilder, leader_of, scenario


@scenario(summary="Kill the leader of a partition with SIGKILL while clients write and read, then bring it back")
def leader_kill(plan: PlanBuilder) -> None:
    orders = plan.topic("orders", partitions=3, replication=3, min_isr=2)
    plan.write(orders, clients=3)
    plan.read(orders, clients=2)
    plan.hold(seconds=plan.draw(3, 5))
    with plan.kill(leader_of(orders, 0)):
        plan.hold(seconds=plan.draw(3, 5))
    plan.hold(seconds=3)
