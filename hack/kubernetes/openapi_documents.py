"""Writes what the local API server publishes about native kinds: the OpenAPI v3 documents of a real API server.

Run it whenever the Kubernetes version in go.mod changes, and check in what it writes:

    PYTHONPATH=. .venv/bin/python hack/kubernetes/openapi_documents.py

Schemas that several documents share are stored once; the file is compressed, since it is read only when someone asks.
"""

from __future__ import annotations

import json
import lzma
import time
from pathlib import Path

from tests.support.realcluster import ControlPlane

TARGET = Path(__file__).parents[2] / "src/kruise/local/openapi/native.json.xz"
GROUP_VERSIONS = (
    "api/v1",
    "apis/admissionregistration.k8s.io/v1",
    "apis/apiextensions.k8s.io/v1",
    "apis/apps/v1",
    "apis/authentication.k8s.io/v1",
    "apis/authorization.k8s.io/v1",
    "apis/autoscaling/v1",
    "apis/batch/v1",
    "apis/coordination.k8s.io/v1",
    "apis/discovery.k8s.io/v1",
    "apis/events.k8s.io/v1",
    "apis/policy/v1",
    "apis/rbac.authorization.k8s.io/v1",
    "apis/scheduling.k8s.io/v1",
    "apis/storage.k8s.io/v1",
)


def main() -> None:
    schemas: dict[str, object] = {}
    documents: dict[str, object] = {}
    with ControlPlane(scheduler=False, controller_manager=False) as cluster:
        deadline = time.monotonic() + 30
        while any(cluster.request("GET", f"/openapi/v3/{path}").status != 200 for path in GROUP_VERSIONS):
            if time.monotonic() > deadline:
                raise SystemExit("the API server does not publish all documents")
            time.sleep(0.5)
        for path in GROUP_VERSIONS:
            document = cluster.request("GET", f"/openapi/v3/{path}").ok()
            document = json.loads(document) if isinstance(document, str) else document
            for name, schema in document["components"]["schemas"].items():
                if schemas.setdefault(name, schema) != schema:
                    raise SystemExit(f"{name} differs between documents")
            documents[path] = {
                "schemas": sorted(document["components"]["schemas"]),
                "paths": document["paths"],
                "securitySchemes": document["components"].get("securitySchemes", {}),
            }
    content = json.dumps({"schemas": schemas, "documents": documents}, sort_keys=True, separators=(",", ":"))
    TARGET.write_bytes(lzma.compress(content.encode(), preset=9))


if __name__ == "__main__":
    main()
