"""The serving certificate, changed while connections come in.

A listening socket keeps the context that it was opened with. So that context only hands each new handshake over to the
current one, which is swapped whole: no handshake sees half a change, connections that exist go on with what they have,
and a broken pair of files leaves the old certificate in place (MGR-30).
"""

from __future__ import annotations

import ssl
from pathlib import Path

from kruise.admission.certificates import Material
from kruise.machinery.certificate_pairs import load_pair


class ServingCertificate:
    def __init__(self) -> None:
        self._current: ssl.SSLContext | None = None
        self.context = _context()
        """For the listening socket."""
        self.context.sni_callback = self._hand_over

    @property
    def is_loaded(self) -> bool:
        return self._current is not None

    def load(self, certificate: Path, key: Path) -> None:
        """Use this pair from the next handshake on. Raises `ssl.SSLError` or `OSError`, and changes nothing then."""
        context = _context()
        context.load_cert_chain(certificate, key)
        self._current = context

    def use(self, material: Material) -> None:
        """Likewise, of a pair that is in no file."""
        context = _context()
        load_pair(context, material.cert, material.key)
        self._current = context

    def _hand_over(self, connection: ssl.SSLObject, name: str | None, context: ssl.SSLContext) -> int | None:
        if self._current is None:
            # Nothing to show yet: the caller gets a clear alert and tries again, as with a closed port.
            return ssl.ALERT_DESCRIPTION_INTERNAL_ERROR
        connection.context = self._current
        return None


def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # API servers keep connections open and do not resume sessions: tickets would only cost.
    context.num_tickets = 0
    context.options |= ssl.OP_NO_TICKET
    return context
