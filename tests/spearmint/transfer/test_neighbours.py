"""Regions learn from what the others know, which is read again when it has grown."""

from __future__ import annotations

from spearmint.transfer import EarlierSearch, EarlierTrial, Neighbours


def test_a_region_is_read_again_when_it_has_grown_by_a_third() -> None:
    complete, read = {"a": 7, "b": 8, "c": 0}, []

    def known(name: str) -> EarlierSearch:
        read.append(name)
        trials = tuple(EarlierTrial({"x": 0.1}, float(i)) for i in range(complete[name]))
        return EarlierSearch(
            name=name, maximize=False, trials=trials, n_complete=len(trials), region=name
        )

    neighbours = Neighbours()
    assert neighbours.of("b", complete, known) == []
    (first,) = neighbours.of("a", complete, known)
    assert neighbours.of("c", complete, known) == [first]
    for n in range(8, 101):
        complete["b"] = n
        (last,) = neighbours.of("a", complete, known)
    assert last.n_complete > 70
    assert len(read) < 12
    assert set(read) == {"b"}


def test_a_region_learns_from_the_five_largest_others() -> None:
    complete = {str(n): n for n in range(8, 20)}

    def known(name: str) -> EarlierSearch:
        return EarlierSearch(
            name=name, maximize=False, trials=(), n_complete=int(name), region=name
        )

    found = Neighbours().of("19", complete, known)
    assert [each.name for each in found] == ["18", "17", "16", "15", "14"]
