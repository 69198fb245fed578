"""A certificate and its key, loaded from memory.

Python reads such pairs from files only, so files are made for a moment.
"""

from __future__ import annotations

import contextlib
import os
import ssl
import sys


def load_pair(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Both PEM. Raises `ssl.SSLError` or `ValueError` where they are no pair, and `OSError` where there is no place for
    a file."""
    # Apart: people have a key in the file of the certificate, too, and not always the same one.
    with contextlib.ExitStack() as files:
        context.load_cert_chain(_file(certificate, files), _file(key, files), password=_no_password)


def _no_password() -> str:
    """OpenSSL would ask at the terminal for the password of an encrypted key, and block everything meanwhile."""
    return ""


def _file(content: bytes, files: contextlib.ExitStack) -> str:
    """Its path. For this user alone, and gone afterwards. In memory where the system can: no disk ever has the key, and
    a file system that may not be written to does not matter."""
    return _in_memory(content, files) or _in_directory(content, files)


def _in_memory(content: bytes, files: contextlib.ExitStack) -> str:
    """Empty where the system has no such files, or does not let them be opened by a path."""
    if sys.platform != "linux":
        return ""
    try:
        number = os.memfd_create("kruise")
        files.callback(os.close, number)
        with open(number, "wb", closefd=False) as file:
            file.write(content)
    except OSError:
        return ""
    path = f"/proc/self/fd/{number}"
    return path if os.access(path, os.R_OK) else ""


def _in_directory(content: bytes, files: contextlib.ExitStack) -> str:
    import tempfile  # seldom needed, and slow to import

    path = os.path.join(files.enter_context(tempfile.TemporaryDirectory(prefix="kruise-")), "pem")
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
    return path
