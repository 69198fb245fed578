"""Making and checking certificates, at chosen times."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from hypothesis import given
from hypothesis import strategies as st

from kruise.admission import certificates
from kruise.admission.certificates import (
    DEFAULT_RENEW_BEFORE,
    CertificateError,
    Material,
    check,
    former_bundle,
    from_data,
    from_external_data,
    issue,
    issued_at,
    parse_renew_before,
)

NOW = datetime(2030, 1, 1, tzinfo=UTC)
NAME = "kruise-webhook-service.kruise-system.svc"
DAY = timedelta(days=1)


def certificate(pem: bytes) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pem)


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("180d", 180),
        ("6m", 180),
        ("1y", 365),
        ("10d", 10),
        ("0d", 180),
        ("-5d", 180),
        ("", 180),
        ("5", 180),
        ("5w", 180),
        ("d", 180),
        ("1.5y", 180),
        ("٣d", 180),
        ("9" * 40 + "y", 180),
    ],
)
def test_renew_before(text: str, days: int) -> None:  # MGR section 2, CERTS_RENEW_BEFORE
    assert parse_renew_before(text) == timedelta(days=days)


@given(st.text(max_size=12))
def test_renew_before_takes_any_text(text: str) -> None:
    assert parse_renew_before(text) > timedelta(0)


def test_what_is_made() -> None:  # MGR-34, with elliptic-curve keys
    material = issue(NAME, NOW)
    ca, cert = certificate(material.ca_cert), certificate(material.cert)
    assert ca.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value == "webhook-cert-ca"
    assert cert.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value == NAME
    for item in (ca, cert):
        key = item.public_key()
        assert isinstance(key, ec.EllipticCurvePublicKey)
        assert key.curve.name == "secp256r1"
        assert NOW + timedelta(days=3649) < item.not_valid_after_utc <= NOW + timedelta(days=3650)
        assert item.not_valid_before_utc < NOW
    names = cert.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["localhost", NAME]
    assert list(cert.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value) == [
        ExtendedKeyUsageOID.SERVER_AUTH
    ]
    assert material.bundle == material.ca_cert
    assert issued_at(material) == NOW
    check(material, NAME, NOW)
    check(material, NAME, NOW + timedelta(days=3649))


def test_an_ip_host_gets_an_ip_san() -> None:  # MGR-34
    material = issue("10.1.2.3", NOW)
    names = certificate(material.cert).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [str(item) for item in names.get_values_for_type(x509.IPAddress)] == ["10.1.2.3"]
    assert names.get_values_for_type(x509.DNSName) == ["localhost"]
    check(material, "10.1.2.3", NOW)
    with pytest.raises(CertificateError, match=r"not for 10\.1\.2\.4"):
        check(material, "10.1.2.4", NOW)


def test_a_name_too_long_for_a_common_name_still_works() -> None:
    name = f"{'s' * 60}.{'n' * 60}.svc"
    check(issue(name, NOW), name, NOW)


def test_the_pairs_of_keys_hold_the_same_content() -> None:  # MGR-32
    data = issue(NAME, NOW).to_data()
    assert set(data) == {"ca-key.pem", "ca-cert.pem", "key.pem", "cert.pem", "tls.key", "tls.crt"}
    assert data["key.pem"] == data["tls.key"]
    assert data["cert.pem"] == data["tls.crt"]
    assert from_data(data).to_data() == data


@pytest.mark.parametrize("missing", ["ca-key.pem", "ca-cert.pem", "key.pem", "cert.pem", "tls.key", "tls.crt"])
def test_missing_keys_are_named(missing: str) -> None:
    data = issue(NAME, NOW).to_data()
    with pytest.raises(CertificateError, match=f"no {missing}"):
        from_data({**data, missing: b""})


def test_pairs_that_differ_are_refused() -> None:
    data = issue(NAME, NOW).to_data()
    with pytest.raises(CertificateError, match="differ"):
        from_data({**data, "tls.crt": issue(NAME, NOW).cert})


def changed(material: Material, **changes: Any) -> Material:
    return dataclasses.replace(material, **changes)


def test_what_does_not_fit_together_is_refused() -> None:  # MGR-33
    good, other = issue(NAME, NOW), issue(NAME, NOW)
    cases = {
        "does not belong to the serving certificate": changed(good, key=other.key),
        "does not belong to the CA certificate": changed(good, ca_key=other.ca_key),
        "does not lead to the CA": changed(good, ca_cert=other.ca_cert, ca_key=other.ca_key),
        "the serving certificate is unreadable": changed(good, cert=b"nonsense"),
        "the CA certificate is unreadable": changed(good, ca_cert=b""),
        "the serving key is unreadable": changed(good, key=b"-----BEGIN PRIVATE KEY-----\n"),
    }
    for text, material in cases.items():
        with pytest.raises(CertificateError, match=text):
            check(material, NAME, NOW)
    with pytest.raises(CertificateError, match=r"not for other\.svc"):
        check(good, "other.svc", NOW)


def test_validity_is_checked_at_the_given_time() -> None:  # MGR-33
    material = issue(NAME, NOW)
    with pytest.raises(CertificateError, match="the serving certificate ends at 2039-12-30, needed at 2040-01-02"):
        check(material, NAME, NOW + timedelta(days=3653))
    with pytest.raises(CertificateError, match="begins at"):
        check(material, NAME, NOW - DAY)


@given(st.binary(max_size=80), st.binary(max_size=80), st.binary(max_size=80))
def test_no_bytes_break_the_check(ca: bytes, cert: bytes, key: bytes) -> None:
    with pytest.raises(CertificateError):
        check(Material(ca_cert=ca, ca_key=b"", cert=cert, key=key), NAME, NOW)


def test_a_ca_with_a_year_left_signs_again() -> None:  # MGR-34
    first = issue(NAME, NOW)
    later = NOW + timedelta(days=3650 - 366)
    second = issue(NAME, later, keep_ca_of=first)
    assert second.ca_cert == first.ca_cert
    assert second.cert != first.cert
    assert second.bundle == first.bundle
    check(second, NAME, later)


def test_a_ca_near_its_end_is_replaced_and_stays_trusted_for_a_while() -> None:  # MGR-34
    first = issue(NAME, NOW)
    later = NOW + timedelta(days=3650 - 300)
    second = issue(NAME, later, keep_ca_of=first)
    assert second.ca_cert != first.ca_cert
    assert second.former_ca_certs == first.ca_cert
    assert second.bundle == second.ca_cert + first.ca_cert
    check(second, NAME, later + DEFAULT_RENEW_BEFORE)


def test_a_ca_whose_key_is_lost_or_foreign_is_replaced() -> None:
    first = issue(NAME, NOW)
    for key in (b"", b"nonsense", issue(NAME, NOW).ca_key):
        second = issue(NAME, NOW, keep_ca_of=changed(first, ca_key=key))
        assert second.ca_cert != first.ca_cert
        assert first.ca_cert in second.bundle


def test_a_certificate_never_outlives_its_ca() -> None:
    first = issue(NAME, NOW)
    second = issue(NAME, NOW + timedelta(days=2000), keep_ca_of=first)
    assert certificate(second.cert).not_valid_after_utc == certificate(first.ca_cert).not_valid_after_utc


def test_a_former_bundle_keeps_what_is_good_once_and_little_of_it() -> None:
    old = [issue(NAME, NOW - timedelta(days=100 * n)).ca_cert for n in range(5)]
    expired = issue(NAME, NOW - timedelta(days=4000)).ca_cert
    got = former_bundle(old[0] + b"junk\n" + expired + old[0] + old[1] + old[2] + old[3], NOW, at_most=3)
    assert got == old[0] + old[1] + old[2]
    assert former_bundle(b"", NOW) == b""


def test_files_show_the_whole_bundle_as_ca() -> None:
    """Our own health check trusts `ca-cert.pem` while the former certificate is still served (MGR-24)."""
    first = issue(NAME, NOW)
    second = issue(NAME, NOW, keep_ca_of=changed(first, ca_key=b""))
    assert second.to_files()["ca-cert.pem"] == second.ca_cert + first.ca_cert
    assert second.to_data()["ca-cert.pem"] == second.ca_cert


def test_external_certificates_with_an_intermediate() -> None:  # MGR-36
    root = trustme.CA(key_type=trustme.KeyType.RSA)
    between = root.create_child_ca()
    leaf = between.issue_cert(NAME)
    data = {
        "ca.crt": root.cert_pem.bytes(),
        "tls.crt": b"".join(blob.bytes() for blob in leaf.cert_chain_pems),
        "tls.key": leaf.private_key_pem.bytes(),
    }
    now = datetime.now(UTC)
    check(from_external_data(data), NAME, now)
    check(from_external_data({**data, "ca.crt": between.cert_pem.bytes()}), NAME, now)
    with pytest.raises(CertificateError, match="does not lead to the CA"):
        check(from_external_data({**data, "ca.crt": trustme.CA().cert_pem.bytes()}), NAME, now)
    with pytest.raises(CertificateError, match=r"no ca\.crt, tls\.key"):
        from_external_data({"tls.crt": data["tls.crt"]})


def test_wildcards_cover_one_label() -> None:
    root = trustme.CA()
    leaf = root.issue_cert("*.kruise-system.svc")
    material = Material(
        ca_cert=root.cert_pem.bytes(),
        cert=leaf.cert_chain_pems[0].bytes(),
        key=leaf.private_key_pem.bytes(),
    )
    now = datetime.now(UTC)
    check(material, NAME, now)
    with pytest.raises(CertificateError, match="is not for"):
        check(material, f"a.{NAME}", now)


def test_keys_are_not_shown() -> None:
    material = issue(NAME, NOW)
    assert "PRIVATE KEY" not in repr(material)
    assert certificates.encode_bundle(b"abc") == "YWJj"
