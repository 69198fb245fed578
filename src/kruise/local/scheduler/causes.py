"""Why a pod has no node yet."""

from __future__ import annotations

from kruise.machinery.causes import Act, Meaning

UNSCHEDULABLE = Meaning(code="unschedulable", says="no node fits", act=Act.SOMEBODY)
CLAIMS = Meaning(code="claims", says="its claims are being bound for the node that was chosen", act=Act.NOBODY)

GATES = Meaning(code="gates", says="scheduling gates hold it", act=Act.SOMEBODY)

CAUSES = (UNSCHEDULABLE, CLAIMS, GATES)
