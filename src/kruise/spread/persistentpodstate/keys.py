"""Annotations of PersistentPodStates (PPS section 8)."""

from __future__ import annotations

AUTO = "kruise.io/auto-generate-persistent-pod-state"
REQUIRED = "kruise.io/required-persistent-topology"
PREFERRED = "kruise.io/preferred-persistent-topology"
ANNOTATIONS = "kruise.io/persistent-pod-annotations"
"""On workloads."""
INJECTED = "kruise.io/injected-persistent-pod-state"
"""On pods."""
GENERATED_FROM = "kruise.io/generated-from"
"""On a PersistentPodState that was made for annotations: those that it was made for. What users change in it stays
until these change."""
WHITELIST = "PPS_Watch_Custom_Workload_WhiteList"
