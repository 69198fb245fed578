"""Custom resource definitions: structural schemas, versions, columns and subresources of custom kinds."""

from kruise.local.crds.definition import definition_kind
from kruise.local.crds.registration import Definitions
from kruise.local.crds.schema import Schema

__all__ = ["Definitions", "Schema", "definition_kind"]
