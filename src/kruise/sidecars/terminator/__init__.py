"""The sidecar terminator: pods that run to their end do so, though sidecars run beside their main containers."""
