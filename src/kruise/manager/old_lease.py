"""The lease of another manager, where this one leads without any."""

from __future__ import annotations

import logging

from kruise.api.native.events import LEASES
from kruise.machinery.client.client import Client
from kruise.machinery.client.errors import ClientError, NotFoundError
from kruise.machinery.clock import Clock
from kruise.reasons.manager import manager_by

log = logging.getLogger(__name__)


async def forget(client: Client, namespace: str, name: str, *, clock: Clock) -> None:
    """Take away a lease that nobody keeps: by it, everybody would say that no manager is at work."""
    try:
        lease = await client.get(LEASES, name, namespace)
        if not manager_by(lease, clock.now()).is_down:
            log.warning(
                "another manager holds the lease, and this one is started without leader election: they write against "
                "each other",
                extra={"lease": f"{namespace}/{name}", "holder": lease.spec.holder_identity},
            )
            return
        about = lease.metadata
        await client.delete(LEASES, name, namespace, uid=about.uid, resource_version=about.resource_version)
    except NotFoundError:
        return
    except ClientError as error:
        # The role of an installation does not have the right: its managers always elect one that leads.
        log.warning(
            "an old lease may be there, and commands say then that no manager is at work: delete it",
            extra={"lease": f"{namespace}/{name}", "error": str(error)},
        )
