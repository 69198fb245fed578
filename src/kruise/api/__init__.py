"""The public contract: slim typed objects, API versions, conversion, and the pod template model."""
