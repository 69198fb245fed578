"""What the local API server publishes about its kinds (OpenAPI v3), and what it knows of fields that do not exist."""

from kruise.local.openapi.documents import serve

__all__ = ["serve"]
