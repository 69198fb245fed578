"""Command lines of a control plane's components: what a throw-away cluster for tests needs, and nothing more."""

from __future__ import annotations

from pathlib import Path

from tests.support.clusterpki import Authority, Credentials


def etcd(binary: Path, directory: Path, port: int, peer_port: int) -> list[str | Path]:
    client, peer = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{peer_port}"
    return [
        binary,
        f"--data-dir={directory / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        # The data is thrown away; a fsync per write would only slow the tests.
        "--unsafe-no-fsync",
        "--quota-backend-bytes=8589934592",
        "--log-level=warn",
    ]


def apiserver(
    binary: Path,
    address: str,
    port: int,
    etcd_port: int,
    authority: Authority,
    serving: Credentials,
    tokens: Credentials,
) -> list[str | Path]:
    return [
        binary,
        f"--etcd-servers=http://127.0.0.1:{etcd_port}",
        f"--bind-address={address}",
        f"--advertise-address={address}",
        f"--secure-port={port}",
        # A loopback address must not become the endpoint of service `kubernetes`.
        "--endpoint-reconciler-type=none",
        "--service-cluster-ip-range=10.96.0.0/16",
        f"--client-ca-file={authority.files.certificate}",
        f"--tls-cert-file={serving.certificate}",
        f"--tls-private-key-file={serving.key}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={tokens.certificate}",
        f"--service-account-signing-key-file={tokens.key}",
        "--authorization-mode=Node,RBAC",
        "--allow-privileged=true",
        "--kubelet-preferred-address-types=InternalIP",
        "--profiling=false",
    ]


def client_component(binary: Path, port: int, kubeconfig: Path, serving: Credentials) -> list[str | Path]:
    return [
        binary,
        f"--kubeconfig={kubeconfig}",
        "--leader-elect=false",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--tls-cert-file={serving.certificate}",
        f"--tls-private-key-file={serving.key}",
        "--authorization-always-allow-paths=/healthz,/readyz,/livez,/metrics",
        # The defaults (20 and 50 requests per second) would be the limit of every test and benchmark.
        "--kube-api-qps=1000",
        "--kube-api-burst=2000",
        "--profiling=false",
    ]
