"""WorkloadSpread: the pods of one workload in subsets of nodes, filled in order, without a change of the workload."""
