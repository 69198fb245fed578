"""What names of jobs may be. Pure."""

from __future__ import annotations

import re

from kruise.api.core import formats
from kruise.machinery.names import LABEL_MAX

_NAME = r"^[a-zA-Z0-9\-]+$"


def job_name(name: str, *, kind: str) -> list[str]:
    """What is wrong with the name of a job: its pods have it in a label (BJ-18, ACJ-30)."""
    found = []
    if re.fullmatch(_NAME[1:-1], name, re.ASCII) is None:
        words = f"{kind} name must consist of alphanumeric characters or '-'"
        found.append(f"{words} (e.g. 'example-com', regex used for validation is '{_NAME}')")
    if len(name) > LABEL_MAX:
        found.append(formats.max_length_words(LABEL_MAX))
    return found
