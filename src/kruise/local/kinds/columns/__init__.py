"""The tables that people see: the columns of every native kind, as `kubectl get` prints them."""

from kruise.local.kinds.columns.durations import age, human_duration, since
from kruise.local.kinds.columns.tables import TABLES

__all__ = ["TABLES", "age", "human_duration", "since"]
