"""The exit codes of `kruise plan`."""

from __future__ import annotations

REFUSED, WOULD_NOT_FINISH, WOULD_GET_STUCK, WOULD_CHANGE = 1, 3, 4, 5
