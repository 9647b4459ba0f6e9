"""Fair shares: a pure function, held to its properties."""

import collections

from hypothesis import given
from hypothesis import strategies as st

from notifier_kafka_drivers.sqlite.assignment import assign

MEMBERS = st.lists(st.sampled_from("abcdefgh"), min_size=1, unique=True)


@given(members=MEMBERS, count=st.integers(0, 40), data=st.data())
def test_members_of_the_same_topics_differ_by_one_at_most(
    members: list[str], count: int, data: st.DataObject
) -> None:
    owners = data.draw(st.dictionaries(st.integers(0, 39), st.sampled_from("abcdefghxyz")))
    candidates = dict.fromkeys(range(count), members)
    shares = assign(candidates, owners)
    assert shares.keys() == candidates.keys()
    loads = collections.Counter(dict.fromkeys(members, 0))
    loads.update(shares.values())
    assert loads.keys() == set(members)
    assert max(loads.values()) - min(loads.values()) <= 1
    # And as few moved as that needs: who gives up anything ends with the larger share.
    given_up = {
        owner
        for partition, owner in owners.items()
        if partition in shares and owner in members and shares[partition] != owner
    }
    assert all(loads[owner] == max(loads.values()) for owner in given_up)


@given(
    candidates=st.dictionaries(st.integers(0, 20), MEMBERS),
    owners=st.dictionaries(st.integers(0, 20), st.sampled_from("abcdefgh")),
)
def test_a_partition_goes_to_one_that_reads_it_and_then_stays(
    candidates: dict[int, list[str]], owners: dict[int, str]
) -> None:
    shares = assign(candidates, owners)
    assert shares.keys() == candidates.keys()
    assert all(owner in candidates[partition] for partition, owner in shares.items())
    assert assign(candidates, shares) == shares


def test_a_newcomer_gets_what_is_fair_and_no_more() -> None:
    candidates = {partition: ["a", "b", "c"] for partition in range(4)}
    shares = assign(candidates, {0: "a", 1: "a", 2: "b", 3: "b"})
    assert sorted(collections.Counter(shares.values()).values()) == [1, 1, 2]
    assert sum(shares[p] == owner for p, owner in enumerate("aabb")) == 3


def test_nobody_reads_it() -> None:
    assert assign({1: []}, {1: "gone"}) == {}
