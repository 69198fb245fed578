"""For sources that look at nothing but the object that changed."""

from __future__ import annotations

from typing import Any

from kruise.api.resource import Resource


class NoStores:
    def store(self, resource: Resource[Any]) -> Any:
        raise AssertionError(f"this source should not look at {resource}")


NO_STORES = NoStores()
