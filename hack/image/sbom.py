"""What is in the image: a bill of materials (CycloneDX), of dpkg's fields and the packages' metadata. Pure."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from hack.image.base import SUITE

_NAMESPACE = uuid.UUID("6f8a6c5e-6d4b-5c1e-9d0e-2f6f8f1b7a11")


def bill(
    name: str,
    version: str,
    debian: Sequence[Mapping[str, Any]],
    python: Sequence[Mapping[str, Any]],
    *,
    architecture: str,
    epoch: int,
    digest: str,
) -> dict[str, Any]:
    """Of the image with this digest."""
    components = [*map(_of_debian, debian), *(_of_python(each) for each in python if each["name"] != name)]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{uuid.uuid5(_NAMESPACE, digest)}",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {
                "type": "container",
                "bom-ref": f"{name}-image",
                "name": name,
                "version": version,
                "hashes": [{"alg": "SHA-256", "content": digest.removeprefix("sha256:")}],
                "properties": [{"name": "architecture", "value": architecture}],
                "licenses": [{"license": {"id": "Apache-2.0"}}],
                "purl": f"pkg:pypi/{name}@{quote(version)}",
            },
        },
        "components": components,
        "dependencies": [{"ref": f"{name}-image", "dependsOn": [each["bom-ref"] for each in components]}],
    }


def _of_debian(fields: Mapping[str, Any]) -> dict[str, Any]:
    name, version, architecture = fields["Package"], fields["Version"], fields["Architecture"]
    where = f"arch={architecture}&distro=debian-{SUITE}"
    purl = f"pkg:deb/debian/{quote(name)}@{quote(version, safe='')}?{where}"
    return {
        "type": "library",
        "bom-ref": purl,
        "name": name,
        "version": version,
        "purl": purl,
        "supplier": {"name": fields["Maintainer"]},
        # Debian states licences file by file.
        "properties": [{"name": "licences", "value": f"/usr/share/doc/{name}/copyright"}],
    }


def _of_python(about: Mapping[str, Any]) -> dict[str, Any]:
    purl = f"pkg:pypi/{quote(about['name'].lower().replace('_', '-'))}@{quote(about['version'], safe='')}"
    found = {"type": "library", "bom-ref": purl, "name": about["name"], "version": about["version"], "purl": purl}
    return {**found, "licenses": [{"license": {"name": about["licence"]}}]} if about["licence"] else found
