"""Assigns partitions to members. A pure function, so every member computes the same assignment."""

from collections.abc import Iterable, Mapping


def assign(candidates: Mapping[int, Iterable[str]], owners: Mapping[int, str]) -> dict[int, str]:
    """Assign each partition to one of its candidates, evenly and with as few moves as possible.

    ``owners`` are the present ones. Members that read the same topics get numbers of partitions
    that differ by at most one.
    """
    loads = {member: 0 for members in candidates.values() for member in members}
    assigned: dict[int, str] = {}
    for partition, members in candidates.items():
        if (owner := owners.get(partition)) is not None and owner in members:
            assigned[partition] = owner
            loads[owner] += 1
    for partition, members in sorted(candidates.items()):
        if partition not in assigned and members:
            assigned[partition] = _least_loaded(members, loads)
            loads[assigned[partition]] += 1
    while _even_out(candidates, assigned, loads):
        pass
    return assigned


def _even_out(
    candidates: Mapping[int, Iterable[str]], assigned: dict[int, str], loads: dict[str, int]
) -> bool:
    """Move partitions from the members with most to those with fewest; return whether any moved."""
    moved = False
    for partition, owner in sorted(assigned.items()):
        other = _least_loaded(candidates[partition], loads)
        most = max(loads[member] for member in candidates[partition])
        # A move reduces a difference of two or more only, so this ends.
        if loads[owner] == most > loads[other] + 1:
            assigned[partition] = other
            loads[owner] -= 1
            loads[other] += 1
            moved = True
    return moved


def _least_loaded(members: Iterable[str], loads: Mapping[str, int]) -> str:
    return min(members, key=lambda member: (loads[member], member))
