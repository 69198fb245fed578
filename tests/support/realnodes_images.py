"""Container images out of a static busybox, made here and pushed to the registry that all real nodes pull from.

An image is a layer with busybox, a layer with a script and files, a configuration and a manifest: tar, gzip and JSON.
The same content always gives the same digests. `catalogue` makes what every cluster has from its start: small stand-ins
under well-known names. They serve a page that names the version, and end at once on SIGTERM.
"""

from __future__ import annotations

import gzip
import hashlib
import http.client
import io
import json
import shutil
import subprocess
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

_MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
_CONFIG_TYPE = "application/vnd.oci.image.config.v1+json"
_LAYER_TYPE = "application/vnd.oci.image.layer.v1.tar+gzip"
_INDEX_TYPE = "application/vnd.oci.image.index.v1+json"
_SCRIPT_PATH = "/entrypoint.sh"
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


class RegistryError(RuntimeError):
    """The registry refused something; the text has the request and its answer."""


@dataclass(frozen=True)
class Image:
    """A made image: its blobs by digest, and its manifest."""

    blobs: Mapping[str, bytes]
    manifest: bytes

    @property
    def digest(self) -> str:
        """The manifest's digest: what a pod's imageID shows."""
        return _digest(self.manifest)

    def archive(self, name: str) -> bytes:
        """An OCI archive, for an import straight into containerd."""
        entry = {
            "mediaType": _MANIFEST_TYPE,
            "digest": self.digest,
            "size": len(self.manifest),
            "annotations": {"io.containerd.image.name": name},
        }
        index = {"schemaVersion": 2, "mediaType": _INDEX_TYPE, "manifests": [entry]}
        files: dict[str, bytes | str] = {
            "oci-layout": '{"imageLayoutVersion":"1.0.0"}',
            "index.json": json.dumps(index),
        }
        for digest, content in {**self.blobs, self.digest: self.manifest}.items():
            files[f"blobs/sha256/{digest.removeprefix('sha256:')}"] = content
        return _tar(files)


def make_image(
    *,
    script: str = "",
    contents: Mapping[str, bytes | str] | None = None,
    command: Sequence[str] = (),
    ports: Iterable[int] = (),
    environment: Mapping[str, str] | None = None,
) -> Image:
    """An image with busybox, the files of `contents`, and a shell `script` or a `command` to run."""
    files = dict(contents or {})
    if script:
        files[_SCRIPT_PATH] = script
    # Files that begin with `#!` are programs.
    layers = [_base_layer(), *([_tar(files)] if files else [])]
    packed = [_packed(layer) for layer in layers]
    variables = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", **(environment or {})}
    running: dict[str, Any] = {"Env": [f"{name}={value}" for name, value in variables.items()]}
    if script:
        running["Entrypoint"] = ["/bin/sh", _SCRIPT_PATH]
    if command:
        running["Cmd"] = list(command)
    running["ExposedPorts"] = {f"{port}/tcp": {} for port in ports}
    config = json.dumps(
        {
            "architecture": _ARCHITECTURES.get(_machine(), _machine()),
            "os": "linux",
            "config": running,
            "rootfs": {"type": "layers", "diff_ids": [_digest(layer) for layer in layers]},
        }
    ).encode()
    manifest = {
        "schemaVersion": 2,
        "mediaType": _MANIFEST_TYPE,
        "config": _descriptor(_CONFIG_TYPE, config),
        "layers": [_descriptor(_LAYER_TYPE, each) for each in packed],
    }
    return Image({_digest(each): each for each in (config, *packed)}, json.dumps(manifest).encode())


class Registry:
    """The registry of a cluster. Names are as in pods: `nginx:alpine`, `docker.io/library/nginx:alpine`.

    The nodes ask it for images of every registry, so the registry's name in an image name does not count.
    """

    def __init__(self, address: str) -> None:
        self.address = address

    def push(self, name: str, image: Image) -> str:
        """Puts an image under a name, whatever had that name before. Returns the manifest's digest."""
        repository, tag = split_name(name)
        for digest, content in image.blobs.items():
            if self._ask("HEAD", f"/v2/{repository}/blobs/{digest}", allowed=(200, 404)).status == 200:
                continue
            upload = self._ask("POST", f"/v2/{repository}/blobs/uploads/", allowed=(202,)).headers["Location"]
            parts = urlsplit(upload)
            query = f"{parts.query}&digest={digest}" if parts.query else f"digest={digest}"
            self._ask("PUT", f"{parts.path}?{query}", content, allowed=(201,))
        self._ask("PUT", f"/v2/{repository}/manifests/{tag}", image.manifest, _MANIFEST_TYPE, allowed=(201,))
        return image.digest

    def digest(self, name: str) -> str | None:
        """The digest that a name has now, or None."""
        repository, tag = split_name(name)
        answer = self._ask("HEAD", f"/v2/{repository}/manifests/{tag}", allowed=(200, 404))
        return answer.headers["Docker-Content-Digest"] if answer.status == 200 else None

    def answers(self) -> bool:
        try:
            return self._ask("GET", "/v2/", allowed=(200,)).status == 200
        except OSError:
            return False

    def _ask(
        self, method: str, path: str, body: bytes | None = None, kind: str = "", *, allowed: Sequence[int]
    ) -> http.client.HTTPResponse:
        connection = http.client.HTTPConnection(self.address, timeout=30.0)
        try:
            headers = {"Accept": _MANIFEST_TYPE, "Content-Type": kind or "application/octet-stream"}
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            said = answer.read()
        finally:
            connection.close()
        if answer.status not in allowed:
            raise RegistryError(f"{method} {path} at {self.address}: {answer.status} {said.decode(errors='replace')}")
        return answer


def split_name(name: str) -> tuple[str, str]:
    """Repository and tag of an image name: `nginx` is (`library/nginx`, `latest`)."""
    path, colon, tag = name.rpartition(":")
    if not colon or "/" in tag:
        path, tag = name, "latest"
    first, slash, rest = path.partition("/")
    if not (slash and ("." in first or ":" in first or first == "localhost")):
        first, rest = "docker.io", path
    # Only there have single words a second name.
    return (f"library/{rest}" if first == "docker.io" and "/" not in rest else rest), tag


def find_busybox() -> Path | None:
    """A busybox that needs no libraries, or None."""
    found = shutil.which("busybox", path="/bin:/usr/bin")
    # A program with an interpreter is linked against shared libraries.
    return Path(found) if found and b"/lib64/ld-linux" not in Path(found).read_bytes() else None


# Stand-ins

_SERVE = """\
trap 'kill $server 2>/dev/null; exit 0' TERM INT QUIT
echo "{title} starts"
httpd -f -p {port} -h {root} &
server=$!
wait $server
"""
# The port may still belong to the container that this one takes over from.
_SERVE_WHEN_FREE = """\
trap 'exit 0' TERM INT QUIT
echo "{title} starts"
while :; do httpd -f -p {port} -h {root} & wait $!; sleep 1 & wait $!; done
"""
_IDLE = """\
trap 'exit 0' TERM INT QUIT
echo "{title} starts"
while :; do sleep 3600 & wait $!; done
"""


def server_image(title: str, port: int, root: str = "/www", *, script: str = _SERVE) -> Image:
    """Serves a page with `title` and ends at once when asked."""
    page = f"<html><body><h1>{title}</h1></body></html>\n"
    return make_image(
        script=script.format(title=title, port=port, root=root), contents={f"{root}/index.html": page}, ports=[port]
    )


def idle_image(title: str, contents: Mapping[str, bytes | str] | None = None) -> Image:
    """Says its title, does nothing, and ends at once when asked."""
    return make_image(script=_IDLE.format(title=title), contents=contents)


def catalogue() -> dict[str, Image]:
    """The images of every cluster by name."""
    made: dict[str, Image] = {"registry.k8s.io/pause:3.10": pause_image()}
    made["registry.aliyuncs.com/k8sxio/pause:3.2"] = made["registry.k8s.io/pause:3.10"]
    for version in ("1.7.9", "1.9.1", "1.19.1", "1.25", "1.26", "alpine", "mainline", "latest"):
        made[f"nginx:{version}"] = server_image(f"nginx {version}", 80, "/usr/share/nginx/html")
    # Two names for one image: changing between them is no change for a container's imageID.
    made["nginx:1.26-same"] = made["nginx:1.26"]
    for version in ("6", "7"):
        made[f"redis:{version}"] = server_image(f"redis {version}", 6379)
    for version in ("latest", "1.35.0", "1.36"):
        made[f"busybox:{version}"] = make_image(command=["sh"], contents={"/etc/version": f"busybox {version}\n"})
    made["ubuntu:latest"] = make_image(command=["sh"], contents={"/etc/version": "ubuntu latest\n"})
    for version in ("v1", "v2", "v3"):
        made[f"openkruise/guestbook:{version}"] = server_image(f"guestbook {version}", 3000)
    made["openkruise/guestbook:sidecar"] = server_image("guestbook sidecar", 4000)
    migrate = {"/migrate.sh": "#!/bin/sh\nexit 0\n"}
    for version in ("sidecarv1", "sidecarv2"):
        title, root = f"hotupgrade {version}", "/www"
        made[f"openkruise/hotupgrade-sample:{version}"] = make_image(
            script=_SERVE_WHEN_FREE.format(title=title, port=8080, root=root),
            contents={f"{root}/index.html": f"{title}\n", **migrate},
            ports=[8080],
        )
    made["openkruise/hotupgrade-sample:empty"] = idle_image("hotupgrade empty", migrate)
    made["openkruise/hotupgrade-sample:busybox"] = idle_image("hotupgrade busybox")
    return made


@cache
def pause_image() -> Image:
    """The image of sandboxes."""
    return make_image(script="trap 'exit 0' TERM INT\nwhile :; do sleep 86400 & wait $!; done\n")


# Tar, gzip, JSON


@cache
def _base_layer() -> bytes:
    busybox = find_busybox()
    if busybox is None:
        raise RegistryError("no static busybox on this machine: `apt-get install busybox-static`")
    applets = subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True).stdout.split()
    files: dict[str, bytes | str] = {
        "bin/busybox": busybox.read_bytes(),
        "etc/passwd": "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n",
        "etc/group": "root:x:0:\nnogroup:x:65534:\n",
    }
    links = {f"bin/{each}": "busybox" for each in applets if each != "busybox"} | {"usr/bin": "../bin"}
    return _tar(files, links, programs={"bin/busybox"}, directories=("root", "tmp", "usr", "var/log", "var/run"))


def _tar(
    files: Mapping[str, bytes | str],
    links: Mapping[str, str] | None = None,
    *,
    programs: Iterable[str] = (),
    directories: Iterable[str] = (),
) -> bytes:
    """A tar without times and owners, in the order of names."""
    programs = set(programs)
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name in sorted(directories):
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if name == "tmp" else 0o755
            tar.addfile(entry)
        for name, content in sorted(files.items()):
            raw = content.encode() if isinstance(content, str) else content
            entry = tarfile.TarInfo(name.lstrip("/"))
            entry.size = len(raw)
            entry.mode = 0o755 if name in programs or raw.startswith(b"#!") else 0o644
            tar.addfile(entry, io.BytesIO(raw))
        for name, target in sorted((links or {}).items()):
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = tarfile.SYMTYPE, target
            tar.addfile(entry)
    return buffer.getvalue()


@cache
def _packed(layer: bytes) -> bytes:
    return gzip.compress(layer, compresslevel=3, mtime=0)


@cache
def _machine() -> str:
    return subprocess.run(["uname", "-m"], capture_output=True, text=True, check=True).stdout.strip()


def _descriptor(kind: str, content: bytes) -> dict[str, Any]:
    return {"mediaType": kind, "digest": _digest(content), "size": len(content)}


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"
