"""A pair is loaded from memory, with and without a place for files, and leaves nothing behind."""

from __future__ import annotations

import os
import ssl
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

from kruise.admission.certificates import issue
from kruise.machinery.certificate_pairs import load_pair

PAIR = issue("localhost", datetime(2030, 1, 1, tzinfo=UTC))
OTHER = issue("localhost", datetime(2030, 1, 1, tzinfo=UTC))


def context() -> ssl.SSLContext:
    return ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)


def no_files_in_memory(name: str) -> int:
    raise OSError(38, "Function not implemented")


@pytest.fixture(params=["in memory", "in a directory"])
def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Where files may be. In memory none is needed: there is no such directory."""
    directory = tmp_path / "none"
    if request.param == "in a directory":
        directory.mkdir()
        monkeypatch.setattr(os, "memfd_create", no_files_in_memory)
    monkeypatch.setattr(tempfile, "tempdir", str(directory))
    return directory


def test_a_pair_is_loaded_and_nothing_stays(place: Path) -> None:
    before = os.listdir("/proc/self/fd")
    load_pair(context(), PAIR.cert, PAIR.key)
    # A key beside the certificate is not the one that was meant.
    load_pair(context(), OTHER.key + PAIR.cert, PAIR.key)
    for certificate, key in ((PAIR.cert, OTHER.key), (b"nothing", PAIR.key)):
        with pytest.raises(ssl.SSLError):
            load_pair(context(), certificate, key)
    assert os.listdir("/proc/self/fd") == before
    assert not place.exists() or list(place.iterdir()) == []


def test_nobody_is_asked_for_a_password(place: Path) -> None:
    key = serialization.load_pem_private_key(PAIR.key, None)
    locked = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),
    )
    with pytest.raises((ssl.SSLError, ValueError)):
        load_pair(context(), PAIR.cert, locked)


def test_without_any_place_it_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "memfd_create", no_files_in_memory)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    with pytest.raises(FileNotFoundError):
        load_pair(context(), PAIR.cert, PAIR.key)
