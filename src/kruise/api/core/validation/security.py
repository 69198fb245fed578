"""Security contexts of pods and containers."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kruise.api.core import formats
from kruise.api.core.field_errors import Path, duplicate, forbidden, invalid, not_supported, required, too_long
from kruise.api.core.validation import common
from kruise.api.core.validation.common import Errors, Rules, Struct

_PROFILE_TYPES = ("Localhost", "RuntimeDefault", "Unconfined")
_IPC_SYSCTLS = frozenset(
    f"kernel.{name}"
    for name in ("sem", "shm", "shmall", "shmmax", "shmmni", "shm_rmid_forced", "msg", "msgmax", "msgmnb", "msgmni")
)
_LONGEST_PROFILE = 4095
_WINDOWS_DOMAIN = re.compile(
    r'[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}'
    r"|[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*"
)
_WINDOWS_USER_FORBIDDEN = re.compile(r'["/\\:;|=,+*?<>@\[\]]')


def pod_context(path: Path, spec: Struct) -> Errors:
    context = spec.get("securityContext")
    if context is None:
        return
    for field in ("fsGroup", "runAsUser", "runAsGroup"):
        if context.get(field) is not None:
            yield from common.complaints(path.child(field), context[field], formats.user_or_group_id(context[field]))
    for position, group in enumerate(context.get("supplementalGroups") or ()):
        where = path.child("supplementalGroups").at(position)
        yield from common.complaints(where, group, formats.user_or_group_id(group))
    if spec.get("hostPID") and spec.get("shareProcessNamespace"):
        words = "ShareProcessNamespace and HostPID cannot both be enabled"
        yield invalid(path.child("shareProcessNamespace"), True, words)
    yield from _sysctls(path.child("sysctls"), context.get("sysctls") or (), spec)
    if context.get("fsGroupChangePolicy") is not None:
        where = path.child("fsGroupChangePolicy")
        yield from common.choice(where, context["fsGroupChangePolicy"], ("Always", "OnRootMismatch"), optional=True)
    yield from _seccomp(path.child("seccompProfile"), context.get("seccompProfile"))
    yield from _windows_options(path.child("windowsOptions"), context.get("windowsOptions"))
    yield from _app_armor(path.child("appArmorProfile"), context.get("appArmorProfile"))
    if context.get("supplementalGroupsPolicy") is not None:
        where = path.child("supplementalGroupsPolicy")
        yield from common.choice(where, context["supplementalGroupsPolicy"], ("Merge", "Strict"), optional=True)
    if context.get("seLinuxChangePolicy") is not None:
        where = path.child("seLinuxChangePolicy")
        # `MountOption` belongs to a feature that is off in Kubernetes 1.34.
        yield from common.choice(where, context["seLinuxChangePolicy"], ("Recursive",), optional=True)


def _sysctls(path: Path, sysctls: Sequence[Struct], spec: Struct) -> Errors:
    seen: set[str] = set()
    for position, sysctl in enumerate(sysctls):
        where, name = path.at(position).child("name"), sysctl["name"]
        if not name:
            yield required(where)
        elif not formats.sysctl_name(name):
            words = f"must have at most 253 characters and match regex ^{formats.SYSCTL}$"
            yield invalid(where, name, words)
        elif name in seen:
            yield duplicate(where, name)
        dotted = _dotted(name)
        if spec.get("hostNetwork") and dotted.startswith("net."):
            yield invalid(where, name, "may not be specified when 'hostNetwork' is true")
        elif spec.get("hostIPC") and (dotted in _IPC_SYSCTLS or dotted.startswith("fs.mqueue.")):
            yield invalid(where, name, "may not be specified when 'hostIPC' is true")
        seen.add(name)


def _dotted(sysctl: str) -> str:
    """Names may be written with slashes; the first separator tells which way round dots and slashes are meant."""
    first = re.search(r"[./]", sysctl)
    if first is None or first.group() == ".":
        return sysctl
    return sysctl.translate(str.maketrans("./", "/."))


def _seccomp(path: Path, profile: Struct | None) -> Errors:
    if profile is None:
        return
    kind, local = profile["type"], profile.get("localhostProfile")
    if not kind:
        yield required(path.child("type"), "type is required when seccompProfile is set")
    elif kind not in _PROFILE_TYPES:
        yield not_supported(path.child("type"), kind, _PROFILE_TYPES)
    if kind == "Localhost":
        if local is None:
            yield required(path.child("localhostProfile"), "must be set when seccomp type is Localhost")
        else:
            yield from common.complaints(path.child("localhostProfile"), local, formats.descending_path(local))
    elif local is not None:
        shown = common.as_go_shows(profile, "core.SeccompProfile")
        yield invalid(path.child("localhostProfile"), shown, "can only be set when seccomp type is Localhost")


def _app_armor(path: Path, profile: Struct | None) -> Errors:
    if profile is None:
        return
    kind, local = profile["type"], profile.get("localhostProfile")
    where = path.child("localhostProfile")
    if kind == "Localhost":
        words = "must be set when AppArmor type is Localhost"
        if local is None:
            yield required(where, words)
            return
        if local.strip() != local:
            yield invalid(where, local, "must not be padded with whitespace")
        elif not local:
            yield required(where, words)
        if formats.byte_length(local) > _LONGEST_PROFILE:
            yield too_long(where, _LONGEST_PROFILE)
    elif kind in _PROFILE_TYPES:
        if local is not None:
            yield invalid(where, local, "can only be set when AppArmor type is Localhost")
    elif not kind:
        yield required(path.child("type"), "type is required when appArmorProfile is set")
    else:
        yield not_supported(path.child("type"), kind, _PROFILE_TYPES)


def container_context(path: Path, context: Struct | None, *, host_users: bool, rules: Rules) -> Errors:
    if context is None:
        return
    privileged = context.get("privileged")
    if privileged and not rules.allow_privileged:
        yield forbidden(path.child("privileged"), "disallowed by cluster policy")
    for field in ("runAsUser", "runAsGroup"):
        if context.get(field) is not None:
            yield from common.complaints(path.child(field), context[field], formats.user_or_group_id(context[field]))
    mount = context.get("procMount")
    if mount is not None:
        where = path.child("procMount")
        if mount not in ("Default", "Unmasked"):
            yield not_supported(where, mount, ("Default", "Unmasked"))
        elif host_users and mount == "Unmasked":
            yield invalid(where, mount, "`hostUsers` must be false to use `Unmasked`")
    yield from _seccomp(path.child("seccompProfile"), context.get("seccompProfile"))
    if context.get("allowPrivilegeEscalation") is False:
        words = "cannot set `allowPrivilegeEscalation` to false and"
        shown = common.as_go_shows(context, "core.SecurityContext")
        if privileged:
            yield invalid(path, shown, f"{words} `privileged` to true")
        for _ in [name for name in (context.get("capabilities") or {}).get("add") or () if name == "CAP_SYS_ADMIN"]:
            yield invalid(path, shown, f"{words} `capabilities.Add` CAP_SYS_ADMIN")
    yield from _windows_options(path.child("windowsOptions"), context.get("windowsOptions"))
    yield from _app_armor(path.child("appArmorProfile"), context.get("appArmorProfile"))


def _windows_options(path: Path, options: Struct | None) -> Errors:
    if options is None:
        return
    name, spec, user = (options.get(key) for key in ("gmsaCredentialSpecName", "gmsaCredentialSpec", "runAsUserName"))
    if name is not None:
        yield from common.complaints(path.child("gmsaCredentialSpecName"), name, formats.dns_subdomain(name))
    if spec is not None:
        where = path.child("gmsaCredentialSpec")
        if not spec:
            yield invalid(where, spec, "gmsaCredentialSpec cannot be an empty string")
        elif formats.byte_length(spec) > 64 * 1024:
            yield invalid(where, spec, "gmsaCredentialSpec size must be under 64 KiB")
    if user is not None:
        yield from common.complaints(path.child("runAsUserName"), user, _windows_user(user))


def _windows_user(text: str) -> list[str]:
    if not text:
        return ["runAsUserName cannot be an empty string"]
    if any(ord(char) < 0x20 or ord(char) == 0x7F for char in text):
        return ["runAsUserName cannot contain control characters"]
    parts = text.split("\\")
    if len(parts) > 2:
        return ["runAsUserName cannot contain more than one backslash"]
    found: list[str] = []
    user = parts[-1]
    if len(parts) == 2:
        if formats.byte_length(parts[0]) >= 256:
            found.append("runAsUserName's Domain length must be under 256 characters")
        if not _WINDOWS_DOMAIN.fullmatch(parts[0]):
            found.append("runAsUserName's Domain doesn't match the NetBios nor the DNS format")
    if not user:
        found.append("runAsUserName's User cannot be empty")
    elif formats.byte_length(user) > 104:
        found.append("runAsUserName's User length must not be longer than 104 characters")
    if user and not user.strip(". "):
        found.append("runAsUserName's User cannot contain only periods or spaces")
    if _WINDOWS_USER_FORBIDDEN.search(user):
        found.append("runAsUserName's User cannot contain the following characters: \"/\\:;|=,+*?<>@[]")
    return found
