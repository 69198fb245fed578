"""Events and leases."""

from __future__ import annotations

from datetime import datetime

from kruise.api.meta import ObjectMeta
from kruise.api.resource import Resource
from kruise.machinery.codec import Struct


class ObjectReference(Struct):
    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    field_path: str = ""


class EventSource(Struct):
    component: str = ""
    host: str = ""


class Event(Struct):
    """`v1` Event."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    involved_object: ObjectReference = ObjectReference()
    type: str = ""
    reason: str = ""
    message: str = ""
    count: int = 0
    source: EventSource = EventSource()
    first_timestamp: datetime | None = None
    last_timestamp: datetime | None = None


class LeaseSpec(Struct):
    holder_identity: str = ""
    lease_duration_seconds: int = 0
    acquire_time: datetime | None = None
    renew_time: datetime | None = None
    lease_transitions: int = 0


class Lease(Struct):
    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: LeaseSpec = LeaseSpec()


EVENTS = Resource("", "v1", "events", "Event", True, Event)
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease", True, Lease)
