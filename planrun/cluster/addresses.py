"""The address of a cluster, as `--executor` names it."""

from __future__ import annotations

import ipaddress

from planrun.errors import InvalidInput

_SCHEMES = {"dask": "tcp", "tcp": "tcp", "tls": "tls"}
FORMS = "local, dask://HOST:PORT or tls://HOST:PORT"


def scheduler_address(given: str) -> str:
    """Return the address of a Dask scheduler in Dask's form; raises InvalidInput.

    Without TLS only a scheduler of this machine is taken: whoever reaches it runs what they like on the workers.
    """
    scheme, separator, place = given.partition("://")
    host, _, port = place.rpartition(":")
    if not separator or scheme not in _SCHEMES or not host or not port.isdecimal():
        raise InvalidInput(f"--executor {given}: expected {FORMS}")
    address = f"{_SCHEMES[scheme]}://{place}"
    if not is_private(address):
        raise InvalidInput(
            f"--executor {given}: the connection to another machine needs TLS; give the scheduler and its workers "
            f"certificates and use tls://{place}"
        )
    return address


def is_private(address: str) -> bool:
    """Whether what is sent to an address of Dask's can be read by no other machine: TLS, or the loopback interface."""
    scheme, _, place = address.partition("://")
    if scheme == "tls":
        return True
    host = place.rpartition(":")[0].strip("[]")
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
