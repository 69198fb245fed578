"""A Troupe as users write it: the structs of both versions, and the definition that is made from them."""

from __future__ import annotations

from typing import Annotated

from kruise.api.apps.shared import WorkloadCondition
from kruise.api.definitions import Column, Definition, Scale, Version, definition
from kruise.api.meta import Condition, PartialObject
from kruise.api.resource import Resource
from kruise.api.schema import About, Int32, Int64
from kruise.machinery.codec import Struct

GROUP = "toy.pykruise.dev"


class TroupeSpec(Struct):
    """What a Troupe should be."""

    replicas: Annotated[Int32, About("How many pods there should be. 1 if absent.")] = 1
    image: Annotated[str, About("The image of all pods.")] = ""
    paused: Annotated[bool, About("Whether pods keep the image that they have. False if absent.")] = False


class TroupeStatus(Struct):
    """What a Troupe is."""

    observed_generation: Annotated[Int64, About("The generation of the spec that this status is about.")] = 0
    pods: Annotated[Int32, About("Pods that exist.")] = 0
    ready: Annotated[Int32, About("Pods that are ready.")] = 0
    updated: Annotated[Int32, About("Pods that have the image of the spec.")] = 0
    update_revision: Annotated[str, About("The revision that pods with the image of the spec have.")] = ""
    conditions: Annotated[
        tuple[Condition, ...],
        About(
            "Complete: all pods are there, have the image of the spec, and are ready.",
            shape=tuple[WorkloadCondition, ...],
        ),
    ] = ()


class Troupe(PartialObject):
    """Some pods of one image."""

    spec: Annotated[TroupeSpec, About("What it should be.")] = TroupeSpec()
    status: Annotated[TroupeStatus, About("What it is.")] = TroupeStatus()


class TroupeSpecV1Alpha1(Struct):
    """What a Troupe should be."""

    members: Annotated[Int32, About("How many pods there should be. 1 if absent.")] = 1
    image: Annotated[str, About("The image of all pods.")] = ""
    paused: Annotated[bool, About("Whether pods keep the image that they have. False if absent.")] = False


class TroupeV1Alpha1(PartialObject):
    """Some pods of one image."""

    spec: Annotated[TroupeSpecV1Alpha1, About("What it should be.")] = TroupeSpecV1Alpha1()
    status: Annotated[TroupeStatus, About("What it is.")] = TroupeStatus()


TROUPES = Resource(GROUP, "v1", "troupes", "Troupe", True, Troupe)

_COLUMNS = (
    Column("PODS", "integer", ".status.pods", description="Pods that exist."),
    Column("READY", "integer", ".status.ready", description="Pods that are ready."),
    Column("UPDATED", "integer", ".status.updated", description="Pods that have the image of the spec."),
    Column("IMAGE", "string", ".spec.image", description="The image of all pods."),
)


def _scale(count: str) -> Scale:
    return Scale(spec_replicas=f".spec.{count}", status_replicas=".status.pods")


DEFINITION: Definition = definition(
    group=GROUP,
    kind="Troupe",
    plural="troupes",
    short_names=("tr",),
    versions=(
        Version(name="v1alpha1", type=TroupeV1Alpha1, columns=_COLUMNS, scale=_scale("members")),
        Version(name="v1", type=Troupe, is_stored=True, columns=_COLUMNS, scale=_scale("replicas")),
    ),
    is_converted=True,
)
