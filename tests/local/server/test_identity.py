"""Certificates, token and kubeconfig of a cluster."""

from __future__ import annotations

import base64
from datetime import UTC, datetime

import yaml
from cryptography import x509
from cryptography.x509.oid import NameOID

from kruise.local.server.identity import Identity, kubeconfig, make_identity
from tests.local.server.harness import identity

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def test_certificates_lead_to_the_ca_and_name_everyone() -> None:
    made = make_identity(NOW, names=("api.test", "10.0.0.1"))
    ca, serving, admin = (x509.load_pem_x509_certificate(pem) for pem in (made.ca_cert, made.cert, made.admin_cert))
    serving.verify_directly_issued_by(ca)
    admin.verify_directly_issued_by(ca)
    names = serving.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert {"localhost", "kubernetes", "kubernetes.default.svc", "api.test"} <= set(
        names.get_values_for_type(x509.DNSName)
    )
    assert {"127.0.0.1", "10.0.0.1"} <= {str(each) for each in names.get_values_for_type(x509.IPAddress)}
    assert [each.value for each in admin.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)] == [
        "system:masters"
    ]
    assert ca.not_valid_before_utc < NOW < ca.not_valid_after_utc


def test_each_cluster_has_its_own() -> None:
    first, second = identity(), make_identity(NOW)
    assert first.token != second.token
    assert first.ca_cert != second.ca_cert


def test_files_give_it_back() -> None:
    assert Identity.from_files(identity().to_files()) == identity()


def test_secrets_do_not_show() -> None:
    assert identity().token not in repr(identity())
    assert "PRIVATE KEY" not in repr(identity())


def test_the_kubeconfig_holds_everything() -> None:
    content = yaml.safe_load(kubeconfig(identity(), "https://127.0.0.1:6443"))
    assert content["current-context"] == "kruise"
    cluster = content["clusters"][0]["cluster"]
    assert cluster["server"] == "https://127.0.0.1:6443"
    assert base64.b64decode(cluster["certificate-authority-data"]) == identity().ca_cert
    assert cluster["disable-compression"] is True
    assert base64.b64decode(content["users"][0]["user"]["client-key-data"]) == identity().admin_key
