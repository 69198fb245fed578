"""The group `apps.kruise.io`: one module per kind, and the types that kinds share."""
