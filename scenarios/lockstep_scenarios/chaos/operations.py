"""What operators do to clusters that serve: nothing acknowledged may be lost on the way."""

from lockstep import PlanBuilder, scenario


@scenario(
    summary="Upgrade a 3.9.2 cluster to 4.3.1, one node at a time, under load",
    cluster={"kafka": "3.9.2", "mode": "kraft"},
)
def rolling_upgrade(plan: PlanBuilder) -> None:
    _under_load(plan)
    plan.hold(seconds=plan.draw(1, 3))
    plan.upgrade(to="4.3.1")
    plan.hold(seconds=3)


@scenario(
    summary="Migrate a 3.9.2 cluster from ZooKeeper to KRaft, phase by phase, under load",
    cluster={"kafka": "3.9.2", "mode": "zk", "controllers": 1},
)
def zk_to_kraft(plan: PlanBuilder) -> None:
    _under_load(plan)
    plan.hold(seconds=plan.draw(1, 3))
    plan.migrate()
    plan.hold(seconds=3)


def _under_load(plan: PlanBuilder) -> None:
    orders = plan.topic("orders", partitions=3, replication=3, min_isr=2)
    plan.write(orders, clients=3)
    plan.read(orders, clients=2)
    plan.expect("no-lost-acks", "held")
