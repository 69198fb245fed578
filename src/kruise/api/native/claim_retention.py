"""Who owns the claims of numbered pods, by `persistentVolumeClaimRetentionPolicy` (pure).

The garbage collector does what the policy says: a claim goes when its last owner has gone.
"""

from __future__ import annotations

from typing import NamedTuple

from kruise.machinery.codec import Struct

RETAIN, DELETE = "Retain", "Delete"


class RetentionPolicy(Struct):
    when_deleted: str = RETAIN
    when_scaled: str = RETAIN

    @property
    def retains_all(self) -> bool:
        return DELETE not in (self.when_deleted, self.when_scaled)


class ClaimOwners(NamedTuple):
    workload: bool
    pod: bool


def claim_owners(policy: RetentionPolicy, *, is_condemned: bool) -> ClaimOwners:
    """Which of the two should own the claim. `is_condemned`: the pod is beyond the size of its workload."""
    pod = policy.when_scaled == DELETE and is_condemned
    return ClaimOwners(workload=policy.when_deleted == DELETE and not pod, pod=pod)
