"""What the prober asks of a node, and what it hears: values. Pure."""

from __future__ import annotations

from kruise.api.apps.probes import Probe
from kruise.daemon.kills import Ending
from kruise.machinery.codec import Struct


class Ask(Struct):
    """A probe that is due."""

    node: str
    uid: str
    ip: str
    """Whom TCP and HTTP probes ask: the pod, where the probe does not name a host of its own."""
    container: str
    probe: Probe
    container_id: str = ""
    started_at: float = 0.0
    """The one that was found before, and when it was started; 0: not known."""


class Found(Struct):
    """What one probe found. No state: it was too early, or the probe could not be made at all."""

    container_id: str = ""
    """Empty: there is no such container."""
    started_at: float = 0.0
    is_running: bool = False
    state: str = ""
    message: str = ""
    """Without a state: why the container can never be asked so, if that is known."""
    ending: Ending = Ending()
    """How the container is to be stopped."""
