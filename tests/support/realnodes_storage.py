"""Gives each pending claim of our storage classes a hostPath volume, which grows with it and goes with it.

A process of its own, so that a cluster that was left running has it, too:

    python -m tests.support.realnodes_storage HOST PORT CA CERTIFICATE KEY VOLUMES

All nodes see VOLUMES, so a pod finds its data again on any of them.
"""

from __future__ import annotations

import http.client
import json
import shutil
import ssl
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.realnodes_config import GROWING_CLASS, PROVISIONER, STORAGE_CLASS

PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"

_RETRY_SECONDS = 0.5


def storage_classes() -> tuple[dict[str, Any], ...]:
    """The default one, and one whose claims may grow."""
    common = {"provisioner": PROVISIONER, "reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"}
    default = {"storageclass.kubernetes.io/is-default-class": "true"}
    return (
        {"metadata": {"name": STORAGE_CLASS, "annotations": default}, **common},
        {"metadata": {"name": GROWING_CLASS}, "allowVolumeExpansion": True, **common},
    )


def volume_for(claim: dict[str, Any], volumes: Path) -> dict[str, Any] | None:
    """The volume to make for this claim, or None where it needs none of ours."""
    metadata, spec = claim["metadata"], claim["spec"]
    pending = claim.get("status", {}).get("phase") == "Pending" and not spec.get("volumeName")
    chosen = spec.get("storageClassName")
    if not pending or chosen not in (STORAGE_CLASS, GROWING_CLASS) or metadata.get("deletionTimestamp"):
        return None
    name = f"pvc-{metadata['uid']}"
    return {
        "metadata": {"name": name, "annotations": {PROVISIONED_BY: PROVISIONER}},
        "spec": {
            "accessModes": spec["accessModes"],
            "capacity": {"storage": spec["resources"]["requests"]["storage"]},
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                **{key: metadata[key] for key in ("name", "namespace", "uid")},
            },
            "hostPath": {"path": str(volumes / name), "type": "DirectoryOrCreate"},
            "persistentVolumeReclaimPolicy": "Delete",
            "storageClassName": chosen,
            "volumeMode": spec.get("volumeMode", "Filesystem"),
        },
    }


def size_to_grow_to(claim: dict[str, Any]) -> str:
    """What a bound claim of ours asks for and has not got; empty: nothing. The server lets none ask for less, nor any
    whose class does not allow it."""
    spec, status = claim["spec"], claim.get("status", {})
    if status.get("phase") != "Bound" or spec.get("storageClassName") not in (STORAGE_CLASS, GROWING_CLASS):
        return ""
    wanted = str(spec["resources"]["requests"]["storage"])
    return wanted if wanted != status.get("capacity", {}).get("storage") else ""


def is_left_over(volume: dict[str, Any]) -> bool:
    """Whether a volume of ours has lost its claim."""
    ours = volume["metadata"].get("annotations", {}).get(PROVISIONED_BY) == PROVISIONER
    released = volume.get("status", {}).get("phase") == "Released"
    return bool(ours and released and volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete")


class Provisioner:
    """Two watches, each in a thread: claims and volumes."""

    def __init__(self, host: str, port: int, tls: ssl.SSLContext, volumes: Path) -> None:
        self._host, self._port, self._tls, self._volumes = host, port, tls, volumes

    def run(self) -> None:
        watches: tuple[tuple[str, Callable[[dict[str, Any]], None]], ...] = (
            ("/api/v1/persistentvolumeclaims", self._serve),
            ("/api/v1/persistentvolumes", self._take_back),
        )
        threads = [threading.Thread(target=self._follow, args=each, daemon=True) for each in watches]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _serve(self, claim: dict[str, Any]) -> None:
        volume = volume_for(claim, self._volumes)
        if volume is not None:
            # A conflict means that it is there already: the claim was shown twice before it was bound.
            self._send("POST", "/api/v1/persistentvolumes", volume, allowed=(201, 409))
        elif size := size_to_grow_to(claim):
            self._grow(claim, size)

    def _grow(self, claim: dict[str, Any], size: str) -> None:
        """A directory has room for anything: only the objects have to tell of it, the volume first."""
        metadata = claim["metadata"]
        place = f"/api/v1/namespaces/{metadata['namespace']}/persistentvolumeclaims/{metadata['name']}"
        amount = {"capacity": {"storage": size}}
        volume = f"/api/v1/persistentvolumes/{claim['spec']['volumeName']}"
        self._send("PATCH", volume, {"spec": amount}, allowed=(200, 404))
        self._send("PATCH", f"{place}/status", {"status": amount}, allowed=(200, 404))

    def _take_back(self, volume: dict[str, Any]) -> None:
        if is_left_over(volume):
            name = volume["metadata"]["name"]
            shutil.rmtree(self._volumes / name, ignore_errors=True)
            self._send("DELETE", f"/api/v1/persistentvolumes/{name}", None, allowed=(200, 404))

    def _follow(self, path: str, handle: Callable[[dict[str, Any]], None]) -> None:
        """From version 0, a watch begins with all that the server knows; so a broken one is simply begun again.

        Without a version it would begin with nothing less than the newest state, and fail where the server cannot tell
        in time what that is (`Too large resource version`).
        """
        while True:
            connection = self._connect(timeout=330.0)
            try:
                connection.request("GET", f"{path}?watch=1&resourceVersion=0&timeoutSeconds=300")
                answer = connection.getresponse()
                while answer.status == 200 and (line := answer.readline()):
                    event = json.loads(line)
                    if event["type"] in ("ADDED", "MODIFIED"):
                        handle(event["object"])
            except (OSError, http.client.HTTPException, json.JSONDecodeError) as error:
                print(f"{path}: {error!r}; beginning again", file=sys.stderr, flush=True)
            finally:
                connection.close()
            time.sleep(_RETRY_SECONDS)

    def _send(self, method: str, path: str, body: Any, *, allowed: tuple[int, ...]) -> None:
        connection = self._connect(timeout=10.0)
        try:
            content = None if body is None else json.dumps(body)
            kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
            connection.request(method, path, content, {"Content-Type": kind})
            answer = connection.getresponse()
            said = answer.read().decode(errors="replace")
        finally:
            connection.close()
        if answer.status not in allowed:
            # Ends the watch that brought us here; the next one shows the object again.
            raise http.client.HTTPException(f"{method} {path}: {answer.status} {said}")

    def _connect(self, *, timeout: float) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(self._host, self._port, context=self._tls, timeout=timeout)


def main(arguments: list[str]) -> None:
    host, port, authority, certificate, key, volumes = arguments
    tls = ssl.create_default_context(cafile=authority)
    tls.load_cert_chain(certificate, key)
    Provisioner(host, int(port), tls, Path(volumes)).run()


if __name__ == "__main__":
    main(sys.argv[1:])
