"""The hosts that this process may contact. The setting `offline` forbids all but this machine's own."""

from __future__ import annotations

import ipaddress

from commonplace.errors import Offline


def require_allowed(host: str, purpose: str, *, offline: bool) -> None:
    """Raise Offline where `offline` forbids contacting `host`, which is empty where it is not known beforehand.

    `purpose` begins the sentence: "Pulling arctic-embed-s".
    """
    if offline and not is_this_machine(host):
        reached = host or "the network"
        raise Offline(f"{purpose} needs {reached}, and offline is set. Unset COMMONPLACE_OFFLINE to allow it.")


def is_this_machine(host: str) -> bool:
    """Return whether a host name or address is the loopback interface. Looks nothing up."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
