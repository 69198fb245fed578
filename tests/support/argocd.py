"""Health scripts, run as Argo CD runs them: Lua 5.1 with the basic functions and those for tables, and nothing else."""

from __future__ import annotations

import functools
from typing import Any

from lupa import lua51

from kruise.faces.face import GroupKind
from kruise.gitops.argocd import scripts

_STATUSES = ("Healthy", "Progressing", "Degraded", "Suspended")


class ArgoCD:
    def __init__(self) -> None:
        self._lua = lua51.LuaRuntime(unpack_returned_tuples=True, register_eval=False, register_builtins=False)
        self._lua.execute("string, math, io, debug, require, dofile, loadfile, coroutine = nil")
        self._lua.execute("getmetatable('').__index = nil")
        self._compile = self._lua.eval("function(text) return assert(loadstring(text)) end")
        self._scripts = {face.group_kind: self._compile(script) for face, script in scripts()}

    def health(self, kind: GroupKind, document: dict[str, Any]) -> tuple[str, str]:
        """Status and message."""
        self._lua.globals().obj = self._table(document)
        found = self._scripts[kind]()
        status, message = str(found["status"]), str(found["message"])
        assert status in _STATUSES
        assert message
        return status, message

    def _table(self, value: Any) -> Any:
        if isinstance(value, dict):
            return self._lua.table_from({name: self._table(one) for name, one in value.items() if one is not None})
        if isinstance(value, list | tuple):
            return self._lua.table_from([self._table(one) for one in value])
        return value


@functools.cache
def argo_cd() -> ArgoCD:
    return ArgoCD()
