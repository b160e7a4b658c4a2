"""How the cell counts GPUs."""

from __future__ import annotations

from sge_jobs.node.gpus.cell_counts import parse_given, parse_gpu_complex


def test_the_kind_of_the_consumable() -> None:
    text = "#name shortcut type relop requestable consumable default urgency\n"
    assert parse_gpu_complex(text).consumable == ""
    counted = parse_gpu_complex(text + "gpu gpu INT <= YES JOB 0 0\n")
    assert (counted.consumable, counted.per_slot, counted.chosen) == ("JOB", False, False)
    chosen = parse_gpu_complex(text + "gpu gpu RSMAP <= YES YES NONE 0\n")
    assert (chosen.per_slot, chosen.chosen) == (True, True)


def test_what_the_cell_gives_a_host() -> None:
    text = "hostname node1\ncomplex_values license=1, \\\n   gpu=4\nload_values gpu=9\n"
    assert parse_given(text) == 4
    assert parse_given("complex_values gpu=2(0 1),x=3\n") == 2
    assert parse_given("complex_values NONE\nload_values gpu=9\n") == 0
