"""Pods spread over parts of a cluster: workloads for each part, rules at the creation of pods, and places that last."""
