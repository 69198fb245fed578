"""The command line: every flag of the original is accepted, mistakes are named, what has no effect says so."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kruise.flags import FlagError, usage
from kruise.kinds import features
from kruise.manager import options
from kruise.manager.gates import FeatureGateError
from kruise.manager.options import FLAGS, Role, parse, table_of
from kruise.workloads.cloneset.controller import EXCLUDE_PREPARING_DELETE

ORIGINAL_COMMAND_LINES = [
    # How the published manifests and chart start the manager.
    ["--enable-leader-election", "--metrics-addr=:8080", "--health-probe-addr=:8000", "--logtostderr=true", "--v=4"],
    [
        "--leader-election-namespace=kruise-system",
        "--pprof-addr=localhost:8090",
        "--feature-gates=ImagePullJobGate=true",
        "--sync-period=0",
    ],
    ["-v=5", "-alsologtostderr", "--rest-config-qps=30", "--rest-config-burst", "50", "--cloneset-workers=5"],
    ["--feature-gates=AllAlpha=true,AllBeta=true,EnableExternalCerts=false,TemplateNoDefaults=false"],
]


@pytest.mark.parametrize("arguments", ORIGINAL_COMMAND_LINES)
def test_command_lines_of_the_original_are_accepted(arguments: list[str]) -> None:
    assert parse(arguments, {}).role is Role.ALL


def test_defaults() -> None:
    chosen = parse([], {})
    assert chosen == options.Options(workers=chosen.workers, gates=chosen.gates, shutdown_delay=15.0)
    assert (chosen.lease_duration, chosen.renew_deadline, chosen.retry_period) == (15, 10, 2)
    assert (chosen.webhook.port, chosen.webhook.secret_name) == (9876, "kruise-webhook-certs")
    assert chosen.workers_of("cloneset") == chosen.workers_of("pod-readiness") == 3
    assert chosen.qps == 0  # a cap only where one is given


def test_who_has_an_address_of_its_own_need_not_stay_for_others() -> None:
    outside = {"WEBHOOK_HOST": "127.0.0.1"}
    assert parse([], outside).shutdown_delay == 0.0
    assert parse(["--shutdown-delay=3s"], outside).shutdown_delay == 3.0
    assert parse(["--shutdown-delay=0s"], {}).shutdown_delay == 0.0


def test_values_are_read() -> None:
    chosen = parse(
        [
            "--role=webhook",
            "--enable-leader-election=false",
            "--leader-election-lease-duration",
            "1m30s",
            "--rest-config-qps=12.5",
            "--statefulset-workers=7",
            "--logging-format=json",
            "--health-probe-addr=0",
            "--metrics-addr=127.0.0.1:0",
            "--journal-addr=[::1]:9443",
        ],
        {"POD_NAMESPACE": "ops", "WEBHOOK_HOST": "10.0.0.1", "WEBHOOK_PORT": "9443", "CERTS_RENEW_BEFORE": "90d"},
    )
    assert chosen.role is Role.WEBHOOK
    assert not chosen.elect
    assert chosen.lease_duration == 90
    assert chosen.qps == 12.5
    assert chosen.workers_of("statefulset") == 7
    assert chosen.log_json
    assert (chosen.health_address, chosen.metrics_address) == ("", "127.0.0.1:0")
    assert chosen.journal_address == "[::1]:9443"
    assert (chosen.own_namespace, chosen.lease_namespace) == ("ops", "ops")
    assert (chosen.webhook.host, chosen.webhook.port, chosen.webhook.renew_before) == ("10.0.0.1", 9443, "90d")


def test_a_feature_declares_and_reads_its_own_flags() -> None:
    given = parse(["--cloneset-scaling-exclude-preparing-delete"], {})
    assert given.flag(EXCLUDE_PREPARING_DELETE)
    assert not parse([], {}).flag(EXCLUDE_PREPARING_DELETE)
    assert not options.Options().flag(EXCLUDE_PREPARING_DELETE)
    with pytest.raises(FlagError, match="unknown flag --cloneset-scaling"):
        parse(["--cloneset-scaling-exclude-preparing-delete"], {}, features=())


def test_what_has_no_effect_says_so() -> None:
    chosen = parse(
        [
            "--expectation-timeout=1m",
            "--enable-pprof=true",
            "--webhook-initialize-timeout=1m",
            "--v=2",
            "--feature-gates=ForceDeleteTimeoutExpectationGate=true",
        ],
        {},
    )
    assert chosen.notices == (
        "--enable-pprof has no effect: attach a sampling profiler to the process instead",
        "--expectation-timeout has no effect: controllers see their own writes, there are no expectations to time out",
        "--webhook-initialize-timeout has no effect: "
        "the manager waits for as long as it takes, and readiness says for what",
        "feature gate ForceDeleteTimeoutExpectationGate has no effect: "
        "controllers see their own writes, so there are no expectations to time out",
    )


def test_an_unreadable_sync_period_is_ignored_with_a_word() -> None:
    chosen = parse(["--sync-period=often"], {})
    assert chosen.sync_period == 0
    assert chosen.notices[0].startswith("--sync-period=often is ignored")
    assert parse(["--sync-period=10m"], {}).sync_period == 600


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--enable-leader-electon"], "unknown flag --enable-leader-electon; did you mean --enable-leader-election"),
        (["--xyzzy"], "unknown flag --xyzzy; see --help"),
        (["extra"], "unexpected argument 'extra'"),
        (["--rest-config-qps"], "flag --rest-config-qps needs a value"),
        (["--rest-config-qps=many"], "flag --rest-config-qps=many: not a number"),
        (["--rest-config-qps=nan"], "not a finite number"),
        (["--cloneset-workers=0"], "must be at least 1"),
        (["--cloneset-workers=two"], "not a whole number"),
        (["--enable-leader-election=maybe"], "not a boolean"),
        (["--metrics-addr=8080"], "not an address"),
        (["--metrics-addr=host:99999"], "not an address"),
        (["--role=both"], "not one of all, controllers, webhook"),
        (["--leader-election-retry-period=soon"], "flag --leader-election-retry-period=soon"),
        (["--leader-election-lease-duration=5s"], "lease-duration must be above renew-deadline"),
        (["--default-ttlseconds-for-always-nodeimage=-1"], "must be between 0 and 2678400"),
    ],
)
def test_mistakes_are_named(arguments: list[str], message: str) -> None:
    with pytest.raises(FlagError) as error:
        parse(arguments, {})
    assert message in str(error.value)


def test_an_unknown_gate_is_refused() -> None:  # MGR-88
    with pytest.raises(FeatureGateError, match="unknown feature gate 'Nope'"):
        parse(["--feature-gates=Nope=true"], {})


@pytest.mark.parametrize("port", ["abc", "0", "70000"])
def test_a_webhook_port_that_is_none_is_refused(port: str) -> None:
    with pytest.raises(FlagError, match="WEBHOOK_PORT"):
        parse([], {"WEBHOOK_PORT": port})


def test_every_flag_is_in_the_help() -> None:
    text = usage(table_of(features()))
    assert all(f"--{name}\n" in text for name in FLAGS)
    assert "--cloneset-scaling-exclude-preparing-delete\n" in text
    assert "(default 15s)" in text


@given(st.lists(st.text(max_size=20), max_size=6))
def test_no_command_line_makes_it_crash(arguments: list[str]) -> None:
    try:
        chosen = parse(arguments, {})
    except (FlagError, FeatureGateError):
        return
    assert isinstance(chosen, options.Options)
