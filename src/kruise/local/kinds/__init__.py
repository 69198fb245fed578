"""The native kinds of Kubernetes as the local cluster serves them.

- `native`: the table of kinds, and the registry made of it;
- `describing`: from a row of that table to a description; `typed` and `default_values`: how objects are read;
- `workloads`, `jobs`, `services`, `storage`, `configuration`, `cluster`, `access`, `webhook_configurations`, `pods`:
  what is special about each kind, above all what is refused; `checks` is shared between them;
- `columns`: the tables that people see;
- `admission`: the admission plugins that every API server has; `bootstrap`: the objects that it creates itself.
"""

from kruise.local.kinds.native import NATIVE_KINDS, POD_KIND, native_registry

__all__ = ["NATIVE_KINDS", "POD_KIND", "native_registry"]
