"""Pods with the `KruisePodReady` gate: the gate at their creation, and the condition where no workload writes it."""
