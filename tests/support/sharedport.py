"""A manager whose webhooks listen on a port that others listen on, too: the kernel spreads connections over them, as a
Service does.

    python -m tests.support.sharedport manager --kubeconfig=...
"""

from __future__ import annotations

import functools

from aiohttp import web

from kruise.cli.main import main

if __name__ == "__main__":
    web.TCPSite = functools.partial(web.TCPSite, reuse_port=True)  # type: ignore[misc, assignment]
    main()
