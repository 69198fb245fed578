"""The tables that people see: the columns of every native kind, as `kubectl get` prints them."""

from kruise.local.kinds.columns.durations import age, since
from kruise.local.kinds.columns.tables import TABLES

__all__ = ["TABLES", "age", "since"]
