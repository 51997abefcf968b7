"""A spec as the command-line options that ask for it; `lockstep.cli.options` reads them back."""

from __future__ import annotations

from lockstep.spec.cluster import ClusterSpec


def arguments(spec: ClusterSpec) -> list[str]:
    """Version and mode always, because a scenario may have defaults of its own; else what differs from the default."""
    default = ClusterSpec()
    named = {
        "--kafka-dir": spec.kafka_dir,
        "--kafka": None if spec.kafka_dir else spec.kafka,
        "--mode": spec.mode.value,
        "--brokers": None if spec.brokers == default.brokers else spec.brokers,
        "--controllers": spec.controllers,
        "--zookeepers": None if spec.zookeepers == default.zookeepers else spec.zookeepers,
        "--log-dirs": None if spec.log_dirs == default.log_dirs else spec.log_dirs,
        "--sasl": spec.security.sasl,
    }
    repeated = [
        *(("--rack", rack) for rack in spec.racks),
        *(("--set", f"{name}={value}") for name, value in spec.overrides.items()),
        *(
            ("--set", f"{node}:{name}={value}")
            for node, values in spec.node_overrides.items()
            for name, value in values.items()
        ),
        *(("--node-kafka", f"{node}={version}") for node, version in spec.node_kafka.items()),
        *(("--feature", f"{name}={level}") for name, level in spec.features.items()),
        *(("--user", user) for user in spec.security.users),
    ]
    pairs = [*((name, str(value)) for name, value in named.items() if value is not None), *repeated]
    return [part for pair in pairs for part in pair] + (["--tls"] if spec.security.tls else [])
