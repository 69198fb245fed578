"""The certificate directory changes all files in one step."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from kruise.admission.certfiles import CertificateDirectory

FIRST = {"tls.crt": b"cert 1", "tls.key": b"key 1", "extra": b"x"}
SECOND = {"tls.crt": b"cert 2", "tls.key": b"key 2"}


def seen(path: Path) -> dict[str, bytes]:
    """The files as somebody sees them who knows nothing of links."""
    return {name: (path / name).read_bytes() for name in os.listdir(path) if not name.startswith("..")}


def test_files_are_replaced_together(tmp_path: Path) -> None:  # MGR-35
    directory = CertificateDirectory(tmp_path / "certs")
    assert directory.read() == {}
    assert directory.write(FIRST)
    assert directory.read() == seen(directory.path) == FIRST
    assert directory.write(SECOND)
    assert directory.read() == seen(directory.path) == SECOND


def test_a_reader_between_two_files_gets_a_pair_that_fits(tmp_path: Path) -> None:  # MGR-35
    directory = CertificateDirectory(tmp_path)
    directory.write(FIRST)
    resolved = directory.resolved
    cert = (resolved / "tls.crt").read_bytes()
    directory.write(SECOND)
    assert (cert, (resolved / "tls.key").read_bytes()) == (b"cert 1", b"key 1")


def test_at_no_moment_is_there_a_mix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # MGR-35
    """Looked at after every rename that the replacement does."""
    directory = CertificateDirectory(tmp_path)
    directory.write(FIRST)
    looks = []
    replace = os.replace

    def watched(source: Path, target: Path) -> None:
        looks.append(directory.read())
        replace(source, target)
        looks.append(directory.read())

    monkeypatch.setattr("kruise.admission.certfiles.os.replace", watched)
    directory.write({**SECOND, "new": b"n"})
    assert looks
    assert all(look in (FIRST, {**SECOND, "new": b"n"}) for look in looks)


def test_equal_content_is_not_written_again(tmp_path: Path) -> None:
    directory = CertificateDirectory(tmp_path)
    directory.write(FIRST)
    before = directory.resolved
    assert not directory.write(FIRST)
    assert directory.resolved == before


def test_plain_files_of_somebody_else_are_taken_over(tmp_path: Path) -> None:
    (tmp_path / "tls.crt").write_bytes(b"cert 1")
    (tmp_path / "tls.key").write_bytes(b"key 1")
    directory = CertificateDirectory(tmp_path)
    assert directory.read() == {"tls.crt": b"cert 1", "tls.key": b"key 1"}
    assert directory.write(SECOND)
    assert seen(tmp_path) == SECOND


def test_keys_are_for_the_owner_alone_and_old_generations_go(tmp_path: Path) -> None:
    directory = CertificateDirectory(tmp_path)
    for number in range(5):
        directory.write({"tls.key": str(number).encode()})
    assert stat.S_IMODE((tmp_path / "tls.key").stat().st_mode) == 0o600
    generations = [name for name in os.listdir(tmp_path) if name.startswith("..") and name != "..data"]
    assert len(generations) == 2


def test_a_write_that_fails_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = CertificateDirectory(tmp_path)
    directory.write(FIRST)

    def full(*_: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr("kruise.admission.certfiles.os.replace", full)
    with pytest.raises(OSError, match="no space left"):
        directory.write(SECOND)
    assert directory.read() == seen(tmp_path) == FIRST
