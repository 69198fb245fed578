"""Slim structs of the Kubernetes kinds that controllers read, one module per subject."""
