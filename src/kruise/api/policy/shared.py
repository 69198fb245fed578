"""What the kinds of `policy.kruise.io` share."""

from __future__ import annotations

GROUP = "policy.kruise.io"
