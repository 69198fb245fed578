"""Admission and conversion webhooks as the local API server calls them.

`Webhooks` puts itself into a core's admission. Callers move reviews: `inprocess` without sockets, `https` over TLS
(imported only where it is wanted, since it opens connections).
"""

from kruise.local.webhooks.calling import Caller, CallError, Service, Target
from kruise.local.webhooks.convert import ConversionCaller, WebhookConversion
from kruise.local.webhooks.dispatch import Webhooks
from kruise.local.webhooks.inprocess import AdmissionSite, InProcessCaller
from kruise.local.webhooks.reviews import User

__all__ = [
    "AdmissionSite",
    "CallError",
    "Caller",
    "ConversionCaller",
    "InProcessCaller",
    "Service",
    "Target",
    "User",
    "WebhookConversion",
    "Webhooks",
]
