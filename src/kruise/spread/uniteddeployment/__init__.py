"""UnitedDeployment: one application over several subsets, each made by a workload of its own."""
