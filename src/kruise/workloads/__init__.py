"""The workloads of `apps.kruise.io`: one folder per kind."""
