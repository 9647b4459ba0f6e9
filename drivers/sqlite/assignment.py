"""Who gets which partition. Pure, so that every member comes to the same answer."""

from collections.abc import Iterable, Mapping


def share(candidates: Mapping[int, Iterable[str]], owners: Mapping[int, str]) -> dict[int, str]:
    """Give each partition to one of its candidates, evenly and with as few moves as can be.

    ``owners`` are those of now. Loads then differ by at most one, as far as the
    members read the same topics.
    """
    loads = {member: 0 for members in candidates.values() for member in members}
    shares: dict[int, str] = {}
    for partition, members in candidates.items():
        if (owner := owners.get(partition)) is not None and owner in members:
            shares[partition] = owner
            loads[owner] += 1
    for partition, members in sorted(candidates.items()):
        if partition not in shares and members:
            shares[partition] = _least(members, loads)
            loads[shares[partition]] += 1
    while _even_out(candidates, shares, loads):
        pass
    return shares


def _even_out(candidates: Mapping[int, Iterable[str]], shares: dict[int, str], loads: dict[str, int]) -> bool:
    """Move partitions from those with the most to those with the least; tell whether any moved."""
    moved = False
    for partition, owner in sorted(shares.items()):
        other = _least(candidates[partition], loads)
        most = max(loads[member] for member in candidates[partition])
        # Only a difference of two shrinks by a move, so this ends.
        if loads[owner] == most > loads[other] + 1:
            shares[partition] = other
            loads[owner] -= 1
            loads[other] += 1
            moved = True
    return moved


def _least(members: Iterable[str], loads: Mapping[str, int]) -> str:
    return min(members, key=lambda member: (loads[member], member))
