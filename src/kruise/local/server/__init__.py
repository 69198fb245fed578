"""The HTTPS front of the local API server: what kubectl and every other client talk to."""

from kruise.local.server.http import LocalServer
from kruise.local.server.identity import Identity, kubeconfig, make_identity
from kruise.local.server.logs import LogSource

__all__ = ["Identity", "LocalServer", "LogSource", "kubeconfig", "make_identity"]
