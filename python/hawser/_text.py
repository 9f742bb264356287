"""What objects of the package say of themselves, for people at a prompt and for logs. Nothing here asks a peer."""

from __future__ import annotations

from typing import Any, Callable

from . import _hawser

_SHOWN = 32  # Bytes of what a peer sent; it may be 64 KiB.


def _short(data: bytes) -> str:
    return repr(data) if len(data) <= _SHOWN else f"{data[:_SHOWN]!r}..."


def _agent(self: _hawser.Agent) -> str:
    return f"<hawser.Agent {self.name!r}{', closed' if self.closed else ''}>"


def _peer(self: _hawser.Peer) -> str:
    return f"<hawser.Peer {self.name!r}, {self.state}>"


def _region(self: _hawser.Region) -> str:
    return f"<hawser.Region {self.name!r} of {self.size} bytes, {self.rights}>"


def _range(self: _hawser.Range) -> str:
    return f"<hawser.Range of {self.size} bytes at {self.offset} of {self.region.name!r}>"


def _remote_range(self: _hawser.RemoteRange) -> str:
    return f"<hawser.RemoteRange of {self.size} bytes at {self.offset} of {self.region!r}>"


def _table(self: _hawser.Table) -> str:
    return f"<hawser.Table of {len(self)} ranges{' of a peer' if self.is_remote else ''}>"


def _plan(self: _hawser.Plan) -> str:
    return f"<hawser.Plan: {self.operation} of {self.bytes} bytes in {self.range_count} ranges>"


def _transfer(self: _hawser.Transfer) -> str:
    return f"<hawser.Transfer {self.status}, {self.bytes} bytes>"


def _atomic(self: _hawser.AtomicOp) -> str:
    return f"<hawser.AtomicOp {self.status}>"


def _notification(self: _hawser.Notification) -> str:
    return f"<hawser.Notification {_short(self.data)} from {self.peer.name!r}>"


def _message(self: _hawser.Message) -> str:
    return f"<hawser.Message {_short(self.data)} from {self.peer.name!r} on channel {self.channel}>"


def _event(self: _hawser.PeerEvent) -> str:
    return f"<hawser.PeerEvent: {self.peer.name!r} {self.kind}>"


def _file(self: _hawser.FileInfo) -> str:
    return f"<hawser.FileInfo: {f'{self.size} bytes' if self.exists else 'not there'}>"


def _directory(self: _hawser.Directory) -> str:
    return f"<hawser.Directory: {self.kind}>"


def _entry(self: _hawser.DirectoryEntry) -> str:
    return f"<hawser.DirectoryEntry {self.key!r}: {_short(self.value)}>"


def _change(self: _hawser.DirectoryEvent) -> str:
    return f"<hawser.DirectoryEvent {self.kind}: {len(self.entries)} keys>"


def _request(self: _hawser.Request) -> str:
    return f"<hawser.Request {'over' if self.done() else 'under way'}>"


def _world(self: _hawser.World) -> str:
    return f"<hawser.World: rank {self.rank} of {self.size}>"


TOLD: dict[type, Callable[[Any], str]] = {
    _hawser.Agent: _agent, _hawser.Peer: _peer, _hawser.Region: _region, _hawser.Range: _range,
    _hawser.RemoteRange: _remote_range, _hawser.Table: _table, _hawser.Plan: _plan, _hawser.Transfer: _transfer,
    _hawser.AtomicOp: _atomic, _hawser.Notification: _notification, _hawser.Message: _message,
    _hawser.PeerEvent: _event, _hawser.FileInfo: _file, _hawser.Directory: _directory, _hawser.DirectoryEntry: _entry,
    _hawser.DirectoryEvent: _change, _hawser.Request: _request, _hawser.World: _world}
