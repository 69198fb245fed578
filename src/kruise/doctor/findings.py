"""What can be found, and what a finding says. Pure.

Each kind of trouble has one entry with a code that programs may rely on. A finding is made of its entry, so none can
be told that docs/doctor.md does not explain.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping
from typing import Any

Json = Mapping[str, Any]


class Severity(enum.StrEnum):
    """The worst first."""

    BROKEN = "broken"
    """Something does not work, or keeps others from working."""
    RISK = "risk"
    """It works until something happens that will."""
    NOTE = "note"
    """Worth knowing; nobody has to do anything."""


@dataclasses.dataclass(frozen=True, slots=True)
class Apply:
    """An object of the installation is applied again, as `kruise install` does."""

    manifest: Json


@dataclasses.dataclass(frozen=True, slots=True)
class Rewrite:
    """Objects of a kind are written again in the version that is stored now."""

    definition: str


@dataclasses.dataclass(frozen=True, slots=True)
class Patch:
    """A merge patch, guarded by the version or the uid that was looked at."""

    kind: str
    name: str
    body: Json


Fix = Apply | Rewrite | Patch
"""What changes nothing that somebody may have meant: no pod, no workload, no gate."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    trouble: Trouble
    about: str
    """`KIND/NAME`, with ` in namespace ...` where it has one; or what has no name."""
    message: str
    remedy: str = ""
    fix: Fix | None = None

    @property
    def code(self) -> str:
        return self.trouble.code

    @property
    def severity(self) -> Severity:
        return self.trouble.severity

    def as_data(self) -> dict[str, Any]:
        return {
            "code": self.code,
            "severity": self.severity.value,
            "about": self.about,
            "message": self.message,
            "remedy": self.remedy,
            "canBeMended": self.fix is not None,
        }


@dataclasses.dataclass(frozen=True, slots=True)
class Trouble:
    """An entry of the catalogue."""

    code: str
    severity: Severity
    says: str
    mended: str = ""
    """What `--fix` does about it, where nothing speaks against it; empty: nothing."""

    def found(self, about: str, message: str, remedy: str = "", *, fix: Fix | None = None) -> Finding:
        return Finding(trouble=self, about=about, message=message, remedy=remedy, fix=fix)


_BROKEN, _RISK, _NOTE = Severity.BROKEN, Severity.RISK, Severity.NOTE

# Before an installation
NOT_INSTALLED = Trouble("not-installed", _NOTE, "nothing of PyKruise is in the cluster")
OLD_KUBERNETES = Trouble("old-kubernetes", _BROKEN, "the API server is older than what is supported")
INSTALL_REFUSED = Trouble("install-refused", _BROKEN, "the API server would not take an object of the installation")

# What is installed
SOMEWHERE_ELSE = Trouble("installed-elsewhere", _BROKEN, "the installation is in another namespace than the named one")
MISSING = Trouble("missing-object", _BROKEN, "an object of the installation is not there", "makes it again")
LACKS_RIGHTS = Trouble("lacks-rights", _BROKEN, "a role grants less than the gates need", "grants it again")
BINDING_DIFFERS = Trouble(
    "binding-differs", _BROKEN, "a role is not bound to the account that needs it", "binds the account"
)
NOT_EXEMPT = Trouble(
    "namespace-not-exempt",
    _RISK,
    "the manager's own pods could not start while no manager answers",
    "puts the label back",
)
REMOVAL_BEGAN = Trouble("removal-began", _RISK, "somebody began to remove the installation")
NOT_ESTABLISHED = Trouble("not-established", _BROKEN, "a definition is not served")
OLD_DEFINITION = Trouble(
    "old-definition", _RISK, "a definition lacks versions or fields: what is written there is lost"
)
STORED_VERSIONS = Trouble(
    "stored-versions", _RISK, "objects may still be stored in an older version", "writes them again, unchanged"
)
TWO_VERSIONS = Trouble("two-versions", _RISK, "manager and daemon run different images")
OTHER_VERSION = Trouble("other-version", _NOTE, "this command is of another version than the manager")
UNREADABLE_CONFIGURATION = Trouble("unreadable-configuration", _BROKEN, "a value of kruise-configuration is no JSON")

# What runs
NO_MANAGER = Trouble("no-manager", _BROKEN, "no manager is at work")
MANAGER_NOT_READY = Trouble("manager-not-ready", _BROKEN, "a replica of the manager does not get ready")
ONE_MANAGER = Trouble("one-manager", _NOTE, "a single replica: while it is moved, webhooks do not answer")
UNKNOWN_GATE = Trouble("unknown-gate", _BROKEN, "a feature gate that does not exist: the process does not start")
GATES_DISAGREE = Trouble("gates-disagree", _BROKEN, "manager and daemon have different feature gates")
NO_DAEMON = Trouble("no-daemon", _RISK, "no node daemon is installed, and gates are on that need it")
NODE_WITHOUT_DAEMON = Trouble("node-without-daemon", _RISK, "no daemon is ready on a node that should have one")

# What is intercepted
UNANSWERED = Trouble("webhook-unanswered", _BROKEN, "the API server gets no answer of a webhook")
SLOW = Trouble("webhook-slow", _RISK, "requests that pass a webhook take long")
WITHOUT_MANAGER = Trouble("webhooks-without-manager", _BROKEN, "webhooks are registered, and nobody is there to answer")
NOT_REGISTERED = Trouble("not-registered", _BROKEN, "a manager is at work, and the API server asks it nothing")
OTHER_CA = Trouble(
    "other-ca", _BROKEN, "the API server does not trust the certificate of the webhooks", "puts the CA back"
)
CERTIFICATE = Trouble("bad-certificate", _BROKEN, "the certificate of the webhooks cannot be used")
CERTIFICATE_ENDS = Trouble("certificate-ends", _RISK, "the certificate ends soon, and nobody has renewed it")
NOBODY_BEHIND = Trouble("nobody-behind-service", _BROKEN, "the Service of the webhooks leads to no pod that is ready")
ELSEWHERE = Trouble("webhook-elsewhere", _BROKEN, "a webhook leads to another Service than that of the installation")

# What people have
STUCK = Trouble("stuck-finalizer", _RISK, "an object is to go, and a finalizer holds it")
WAITS = Trouble("waits", _RISK, "a workload waits for somebody to do something")
NEVER_MET = Trouble("budget-never-met", _RISK, "a budget lets no pod go, whatever happens")
ABOUT_NOBODY = Trouble("budget-about-nobody", _NOTE, "a budget protects no pod")

# Taking over from OpenKruise
OPENKRUISE = Trouble("openkruise", _NOTE, "it is OpenKruise that is installed here")
NOTHING_TO_TAKE_OVER = Trouble("nothing-to-take-over", _NOTE, "nothing of OpenKruise is in the cluster")
TAKEN_OVER = Trouble("taken-over", _NOTE, "the cluster was taken over, and the way back is open")
TAKEOVER_BROKEN_OFF = Trouble("takeover-broken-off", _RISK, "a takeover, or the way back, has not come to its end")
UNTRIED_VERSION = Trouble("untried-version", _RISK, "a version of OpenKruise whose objects are not known")
SECOND_MANAGER = Trouble("second-manager", _BROKEN, "a manager is at work that is none of the Deployment's pods")
NO_WAY_TO_START = Trouble("no-way-to-start", _BROKEN, "our own pods would wait for webhooks that nobody answers")
UNKNOWN_STORED_VERSION = Trouble("unknown-stored-version", _BROKEN, "objects are stored in a version that we lack")
UNKNOWN_KIND = Trouble("unknown-kind", _RISK, "a kind of OpenKruise's groups that we do not have")
EXTERNAL_CERTIFICATES = Trouble("external-certificates", _BROKEN, "the certificates of OpenKruise come from outside")
MANAGED_ELSEWHERE = Trouble("managed-elsewhere", _RISK, "a tool may bring OpenKruise back, or delete what it brought")
UNKNOWN_GATES = Trouble("unknown-gates", _RISK, "feature gates of OpenKruise that we do not have")
ARGUMENTS_STAY_BEHIND = Trouble("arguments-stay-behind", _NOTE, "arguments of OpenKruise that ours do not take over")
BOUND_BESIDES = Trouble("bound-besides", _NOTE, "our manager or daemon would have rights that others have given")
PODS_UNDER_WAY = Trouble("pods-under-way", _NOTE, "pods are being updated in place, or wait for a hook")

CATALOGUE: tuple[Trouble, ...] = tuple(value for value in list(globals().values()) if isinstance(value, Trouble))
