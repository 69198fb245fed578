"""Whether a manager is at work, as far as one can tell from outside: by its lease."""

from __future__ import annotations

from datetime import datetime, timedelta

from kruise.api.native.events import Lease
from kruise.machinery.ages import age
from kruise.machinery.codec import Struct

_SLACK = timedelta(seconds=30)
"""Clocks of two machines may differ by this much before a lease is called stale."""


class Manager(Struct):
    is_down: bool = False
    is_unknown: bool = False
    """There is no trace of one. But one that is alone may work without a lease."""
    is_hidden: bool = False
    """Whoever asks cannot see whether one is at work."""
    lacks: str = ""
    """A controller that it does not run, as its gate is off."""
    words: str = ""
    """Why it counts as down, what is missing, or why it cannot be seen."""
    check: str = "kubectl get pods -n kruise-system; kubectl get lease kruise-manager -n kruise-system"
    """How to see whether it runs."""

    @property
    def remedy(self) -> str:
        return f"nothing moves until one runs; see: {self.check}"


UNKNOWN = Manager()
WITHOUT_RIGHTS = Manager(is_hidden=True, words="whether a manager is at work cannot be seen with your rights")
UNANSWERED = Manager(is_hidden=True, words="whether a manager is at work cannot be seen: the cluster does not tell")


def manager_by(lease: Lease | None, now: datetime) -> Manager:
    """None: there is none in the cluster."""
    if lease is None:
        return Manager(
            is_unknown=True, words="no manager has ever led in this cluster: there is no lease kruise-manager"
        )
    namespace, name = lease.metadata.namespace, lease.metadata.name
    check = f"kubectl get pods -n {namespace}; kubectl get lease {name} -n {namespace}"
    spec = lease.spec
    if not spec.holder_identity:
        words = f"no manager is at work: nobody holds the lease {namespace}/{name}"
        return Manager(is_down=True, words=words, check=check)
    lasts = timedelta(seconds=spec.lease_duration_seconds)
    if spec.renew_time is not None and now > spec.renew_time + lasts + _SLACK:
        since = age(spec.renew_time, now)
        words = f"no manager is at work: {spec.holder_identity} renewed the lease {namespace}/{name} last {since} ago"
        return Manager(is_down=True, words=words, check=check)
    return Manager(check=check)
