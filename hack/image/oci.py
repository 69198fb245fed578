"""Layers, images and their files on disk, in the form of OCI. The same content, the same digest."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import stat
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
CONFIG_TYPE = "application/vnd.oci.image.config.v1+json"
LAYER_TYPE = "application/vnd.oci.image.layer.v1.tar+gzip"
INDEX_TYPE = "application/vnd.oci.image.index.v1+json"
REF_NAME = "org.opencontainers.image.ref.name"
# What containerd reads the name from that an archive is imported under.
CONTAINERD_NAME = "io.containerd.image.name"


@dataclass(frozen=True)
class Layer:
    tar: bytes
    made_by: str

    @property
    def diff_id(self) -> str:
        return digest_of(self.tar)


@dataclass(frozen=True)
class Image:
    """A made image: its blobs by digest, and its manifest."""

    blobs: Mapping[str, bytes]
    manifest: bytes
    architecture: str

    @property
    def digest(self) -> str:
        return digest_of(self.manifest)

    @property
    def size(self) -> int:
        """What a node without any of it has to fetch."""
        return sum(map(len, self.blobs.values())) + len(self.manifest)


def layer(tree: Path, made_by: str, epoch: int) -> Layer:
    """All of a directory, with one time, one owner, in the order of names."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path in sorted(tree.rglob("*"), key=lambda path: path.relative_to(tree).as_posix()):
            about = path.lstat()
            entry = tarfile.TarInfo(path.relative_to(tree).as_posix())
            entry.mtime = epoch
            if path.is_symlink():
                entry.type, entry.linkname, entry.mode = tarfile.SYMTYPE, os.readlink(path), 0o777
                tar.addfile(entry)
            elif path.is_dir():
                entry.type = tarfile.DIRTYPE
                entry.mode = 0o1777 if about.st_mode & stat.S_ISVTX else 0o755
                tar.addfile(entry)
            else:
                # Whatever the umask was of whoever made it.
                entry.mode = 0o755 if about.st_mode & 0o100 else 0o644
                entry.size = about.st_size
                with path.open("rb") as content:
                    tar.addfile(entry, content)
    return Layer(buffer.getvalue(), made_by)


def image(
    layers: Sequence[Layer],
    *,
    architecture: str,
    epoch: int,
    running: Mapping[str, Any],
    labels: Mapping[str, str],
) -> Image:
    created = datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    packed = [gzip.compress(each.tar, compresslevel=9, mtime=0) for each in layers]
    config = _json(
        {
            "created": created,
            "architecture": architecture,
            "os": "linux",
            "config": {**running, "Labels": dict(labels)},
            "rootfs": {"type": "layers", "diff_ids": [each.diff_id for each in layers]},
            "history": [{"created": created, "created_by": each.made_by} for each in layers],
        }
    )
    manifest = _json(
        {
            "schemaVersion": 2,
            "mediaType": MANIFEST_TYPE,
            "config": descriptor(CONFIG_TYPE, config),
            "layers": [descriptor(LAYER_TYPE, each) for each in packed],
            "annotations": dict(labels),
        }
    )
    return Image({digest_of(each): each for each in (config, *packed)}, manifest, architecture)


def write_layout(directory: Path, images: Sequence[Image], name: str) -> None:
    """An OCI layout: one image, or an index of one for each architecture."""
    blobs = directory / "blobs" / "sha256"
    blobs.mkdir(parents=True, exist_ok=True)

    def put(content: bytes) -> None:
        path = blobs / digest_of(content).removeprefix("sha256:")
        if not path.exists():
            partial = path.with_suffix(".partial")
            partial.write_bytes(content)
            partial.replace(path)

    entries = []
    for made in images:
        for content in (*made.blobs.values(), made.manifest):
            put(content)
        platform = {"architecture": made.architecture, "os": "linux"}
        entries.append({**descriptor(MANIFEST_TYPE, made.manifest), "platform": platform})
    if len(entries) > 1:
        index = _json({"schemaVersion": 2, "mediaType": INDEX_TYPE, "manifests": entries})
        put(index)
        entries = [descriptor(INDEX_TYPE, index)]
    tag = name.rpartition(":")[2]
    named = [{**entry, "annotations": {CONTAINERD_NAME: name, REF_NAME: tag}} for entry in entries]
    (directory / "oci-layout").write_bytes(_json({"imageLayoutVersion": "1.0.0"}))
    (directory / "index.json").write_bytes(_json({"schemaVersion": 2, "mediaType": INDEX_TYPE, "manifests": named}))


def read_layout(directory: Path) -> Image:
    """The one image of a layout."""

    def blob(digest: str) -> bytes:
        return (directory / "blobs" / "sha256" / digest.removeprefix("sha256:")).read_bytes()

    [entry] = json.loads((directory / "index.json").read_bytes())["manifests"]
    manifest = blob(entry["digest"])
    about = json.loads(manifest)
    parts = [about["config"]["digest"], *(each["digest"] for each in about["layers"])]
    return Image({digest: blob(digest) for digest in parts}, manifest, entry["platform"]["architecture"])


def write_archive(layout: Path, path: Path) -> None:
    """A layout in one file, as `ctr images import`, `docker load` and `skopeo copy oci-archive:` take it."""
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as tar:
        for file in sorted(layout.rglob("*")):
            if file.is_file():
                entry = tarfile.TarInfo(file.relative_to(layout).as_posix())
                entry.size, entry.mode = file.stat().st_size, 0o644
                with file.open("rb") as content:
                    tar.addfile(entry, content)


def descriptor(kind: str, content: bytes) -> dict[str, Any]:
    return {"mediaType": kind, "digest": digest_of(content), "size": len(content)}


def digest_of(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _json(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
