"""Brokers in a network namespace each, so that any two of them can be separated.

A bridge in the namespace of the run joins them and the clients. A script in the place of ``java``
starts each broker in its namespace and writes its address into its properties.
"""

import contextlib
import pathlib
import subprocess
from collections.abc import Iterator, Sequence

NETWORK = "10.77.0"
BRIDGE = "brokers"
SCRIPT = """#!/bin/sh
for last; do :; done
case $last in
{cases}
*) exec {java} "$@" ;;
esac
"""
CASE = """*/node-{number}/server.properties) sed -i '{changes}' "$last"; exec {enter} {java} "$@" ;;"""


def address(number: int) -> str:
    return f"{NETWORK}.{number}"


class SeparateBrokers:
    """A namespace for each broker. Each has ports for clients, controllers and brokers, in this order."""

    def __init__(self, ports: Sequence[Sequence[int]]) -> None:
        self._ports = ports
        _ip("link", "add", "name", BRIDGE, "type", "bridge")
        _ip("address", "add", f"{NETWORK}.254/24", "dev", BRIDGE)
        _ip("link", "set", BRIDGE, "up")
        self._holders = [self._make_namespace(number) for number, _ in enumerate(ports, 1)]

    @property
    def url(self) -> str:
        hosts = [f"{address(number)}:{each[0]}" for number, each in enumerate(self._ports, 1)]
        return f"kafka://{','.join(hosts)}"

    def java(self, real: pathlib.Path, script: pathlib.Path) -> str:
        """Write the script that takes the place of Java; return its path."""
        changes = ";".join(
            f"s/127.0.0.1:{port}/{address(number)}:{port}/g"
            for number, each in enumerate(self._ports, 1)
            for port in each
        )
        cases = [
            CASE.format(number=number, changes=changes, enter=" ".join(self._enter(number)), java=real)
            for number, _ in enumerate(self._ports, 1)
        ]
        script.write_text(SCRIPT.format(cases="\n".join(cases), java=real))
        script.chmod(0o700)
        return str(script)

    @contextlib.contextmanager
    def isolated(self, number: int) -> Iterator[None]:
        """Block all traffic between a broker and the others."""
        others = [address(n) for n, _ in enumerate(self._ports, 1) if n != number]
        enter = self._enter(number)
        try:
            for each in others:
                _ip("route", "add", "blackhole", each, within=enter)
            yield
        finally:
            for each in others:
                _ip("route", "del", "blackhole", each, within=enter)

    def close(self) -> None:
        for holder in self._holders:
            holder.communicate()
        _ip("link", "del", BRIDGE)

    def _make_namespace(self, number: int) -> "subprocess.Popen[bytes]":
        script = ["sh", "-c", "ip link set lo up && echo ready && exec cat"]
        holder = subprocess.Popen(
            ["unshare", "--net", *script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"ready\n", "cannot make a network namespace in a namespace"
        leg = f"leg{number}"
        _ip("link", "add", "name", leg, "type", "veth", "peer", "name", "eth", "netns", str(holder.pid))
        _ip("link", "set", leg, "master", BRIDGE, "up")
        enter = ["nsenter", f"--net=/proc/{holder.pid}/ns/net"]
        _ip("address", "add", f"{address(number)}/24", "dev", "eth", within=enter)
        _ip("link", "set", "eth", "up", within=enter)
        return holder

    def _enter(self, number: int) -> list[str]:
        return ["nsenter", f"--net=/proc/{self._holders[number - 1].pid}/ns/net"]


def _ip(*arguments: str, within: Sequence[str] = ()) -> None:
    subprocess.run([*within, "ip", *arguments], check=True)
