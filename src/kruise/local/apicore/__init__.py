"""The API core: storage, verbs and watches over any registered kind, without a network."""

from kruise.local.apicore.admitting import Admission, AdmissionRequest, Operation
from kruise.local.apicore.builtin import custom_kind, native_kind
from kruise.local.apicore.core import ApiCore, Call
from kruise.local.apicore.errors import StatusError
from kruise.local.apicore.kinds import (
    ActionSubresource,
    KindDescription,
    ObjectSubresource,
    Registry,
    StreamSubresource,
    ViewSubresource,
)
from kruise.local.apicore.storage import MemoryStorage, Storage

__all__ = [
    "ActionSubresource",
    "Admission",
    "AdmissionRequest",
    "ApiCore",
    "Call",
    "KindDescription",
    "MemoryStorage",
    "ObjectSubresource",
    "Operation",
    "Registry",
    "StatusError",
    "Storage",
    "StreamSubresource",
    "ViewSubresource",
    "custom_kind",
    "native_kind",
]
