"""The in-place update engine: what can be changed in a running pod, what it takes and in which order.

Pure code that speaks of pods and revisions, not of any workload. A workload decides which pods may move; this package
says how one moves, and when it has arrived.
"""
