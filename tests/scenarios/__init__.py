"""Behaviours of the workloads, written once, played on the local cluster (virtual time) and on real control planes."""
