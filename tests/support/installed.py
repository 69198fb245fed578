"""The CustomResourceDefinitions that an installation has, by name."""

from __future__ import annotations

from typing import Any

from kruise.kinds import features

DEFINITIONS: dict[str, Any] = {
    definition["metadata"]["name"]: definition for feature in features() for definition in feature.definitions
}
