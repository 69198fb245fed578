"""The CustomResourceDefinition of ContainerRecreateRequest."""

from __future__ import annotations

from kruise.api.apps import containerrecreaterequest, containerrecreaterequest_v1alpha1
from kruise.api.apps.definitions.columns import AGE
from kruise.api.apps.shared import GROUP
from kruise.api.definitions import Column, Definition, Version, definition

_COLUMNS = (
    Column("PHASE", "string", ".status.phase", description="How far the request is."),
    Column("POD", "string", ".spec.podName", description="The pod whose containers are recreated."),
    Column(
        "NODE", "string", r".metadata.labels.crr\.apps\.kruise\.io/node-name", description="The node that it runs on."
    ),
    AGE,
)

DEFINITION: Definition = definition(
    group=GROUP,
    kind="ContainerRecreateRequest",
    plural="containerrecreaterequests",
    short_names=("crr",),
    versions=(
        Version(name="v1alpha1", type=containerrecreaterequest_v1alpha1.ContainerRecreateRequest, columns=_COLUMNS),
        Version(
            name="v1beta1",
            type=containerrecreaterequest.ContainerRecreateRequest,
            is_stored=True,
            columns=_COLUMNS,
        ),
    ),
    is_converted=True,
)
"""CRR section 1."""
