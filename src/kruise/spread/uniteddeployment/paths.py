"""Where things are in a UnitedDeployment."""

from __future__ import annotations

from kruise.workloads.shared.wire import SPEC, TEMPLATE

TOPOLOGY = SPEC.child("topology")
SUBSETS = TOPOLOGY.child("subsets")
SCHEDULE = TOPOLOGY.child("scheduleStrategy")
STRATEGY = SPEC.child("updateStrategy")
STATEFUL_SPEC = TEMPLATE.child("statefulSetTemplate", "spec")
