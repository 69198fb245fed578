"""What a process holds of the memory. Light: processes that measure themselves import it."""

from __future__ import annotations

import re
from pathlib import Path


def memory() -> dict[str, float]:
    """Resident memory now and at its highest, in MB."""
    found = dict(re.findall(r"^(VmRSS|VmHWM):\s+(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE))
    return {"rss": int(found["VmRSS"]) / 1024, "peak": int(found["VmHWM"]) / 1024}
