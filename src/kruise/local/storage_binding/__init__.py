"""Claims and volumes of the local cluster: binding, provisioning, protection and reclaiming."""

from kruise.local.storage_binding.controller import DEFAULT_STORAGE_CLASS, specs

__all__ = ["DEFAULT_STORAGE_CLASS", "specs"]
