"""The best known way to lose acknowledged records, and its control: the same with acks=all."""

from lockstep import PlanBuilder, leader_of, scenario

LAG_TIME_S = 30


@scenario(summary="Cut the leader off from its followers, write with acks=1, kill it: acknowledged records vanish")
def acks_one_loss(plan: PlanBuilder) -> None:
    _kill_a_leader_that_nobody_follows(plan, acks=1)
    plan.expect("no-lost-acks", "permitted")


@scenario(summary="Cut the leader off from its followers, write with acks=all, kill it: nothing acknowledged is lost")
def acks_all_survives(plan: PlanBuilder) -> None:
    _kill_a_leader_that_nobody_follows(plan, acks=-1)
    plan.expect("no-lost-acks", "held")


def _kill_a_leader_that_nobody_follows(plan: PlanBuilder, *, acks: int) -> None:
    # The followers have to stay in the ISR, or none of them could be elected.
    plan.cluster({"replica.lag.time.max.ms": str(LAG_TIME_S * 1000)})
    orders = plan.topic("orders", partitions=1, replication=3, min_isr=2)
    plan.write(orders, clients=2, acks=acks, idempotent=False)
    plan.read(orders, clients=2)
    plan.hold(seconds=plan.draw(2, 3))
    with plan.cut_replication(leader_of(orders, 0)):
        plan.hold(seconds=plan.draw(1, 2), exactly=True)
        killed = plan.kill(leader_of(orders, 0))
    with killed:
        plan.hold(seconds=plan.draw(2, 3))
    plan.hold(seconds=2)
