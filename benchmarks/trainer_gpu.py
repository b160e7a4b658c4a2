"""Compare the trainer on one GPU with PyTorch and JAX: same network, data and optimizer.

    python benchmarks/trainer_gpu.py --json benchmarks/results/trainer_gpu.json
    python benchmarks/trainer_gpu.py --rows tiny-b16 --rows mnist-b100 --quick     # three minutes
    python benchmarks/trainer_gpu.py --rows 784-300-10,b=64,adam --quick
    python benchmarks/trainer_gpu.py --random 10 --seed 1 --json random.json

pycuda_nn runs whole epochs of ``nn.train``, keeps every loss, and evaluates 8,192 rows after each
epoch; PyTorch and JAX only run steps. The libraries run one after the other, in separate processes:
first pycuda_nn with all rows of the table, then JAX, then PyTorch.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from random_networks import draw

HERE = Path(__file__).resolve().parent
TUNED = ("mnist-b128", "netflix-b256", "netflix-b1024", "netflix-b8192")
OTHERS = {
    "tiny-b16": "32-64-1 b16, squared, Adam",
    "small-1-b1024": "128-256-1 b1024, logistic",
    "small-2-b1024": "128-256-2 b1024",
    "mnist-b100": "784-512-512-10 b100",
    "mnist-300x3-b64": "784-300x3-10 b64, dropout .5, Adam",
    "mnist-1000x4-b256": "784-1000x4-10 b256, dropout .2",
    "odd-b250": "513-777-333-7 b250",
    "wide-1000-b512": "2048-4096-4096-1000 b512",
}
NAMES = (*TUNED, *OTHERS)
PRECISIONS = ("bf16", "fp16", "tf32", "float32")
_TITLES = {"jax": "JAX", "torch": "PyTorch graph"}
TORCH = ("graph", "compiled graph")  # eager varies by half from run to run


def main() -> None:
    """Measure every row and precision, and print a line for each."""
    options = _options()
    if options.table:
        options.table.write_text(table(json.loads(options.json.read_text())))
        return
    report: dict = {"machine": {}, "rows": []}
    if options.json and options.json.exists():
        report = json.loads(options.json.read_text())
    names = [*(options.rows or ()), *draw(options.random, options.seed)] or NAMES
    wanted = [(name, p) for name in names for p in options.precision or _usual(name)]
    found: dict[tuple[str, str], dict] = {pair: {} for pair in wanted}
    variants = TORCH[:1] if options.quick else TORCH
    blocks = "3" if options.quick else "5"
    for library, argv in _libraries(wanted, variants)[: 1 if options.ours_only else None]:
        for line in _lines(argv, blocks):
            pair = line.pop("workload"), line.pop("precision")
            report["machine"] = line.pop("machine", report["machine"])
            found[pair][library] = line
            print(f"{pair[0]:<27}{pair[1]:<9}{library:<6}{_numbers(line)}", flush=True)
            _keep(report, found, options.json)
    for row in report["rows"]:
        _show(row)
    print(report["machine"])


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("--rows", "--workload", action="append", metavar="NAME",
        help=f"Measure only this row: {', '.join(NAMES)}, or any network, such as "
        "784-300-10,b=64,adam,dropout=.5. Repeatable. Default: all.")  # fmt: skip
    add("--random", type=int, default=0, metavar="N", help="Measure N networks drawn at random.")
    add("--seed", type=int, default=0, help="Of --random.")
    add("--precision", action="append", metavar="NAME", choices=PRECISIONS,
        help=f"One of {', '.join(PRECISIONS)}. Repeatable. Default: all for the first four rows, "
        "bf16 and float32 for the others.")  # fmt: skip
    add("--quick", action="store_true", help="Measure fewer epochs, and skip torch.compile, which "
        "takes a minute.")  # fmt: skip
    add("--ours-only", action="store_true", help="Measure only pycuda_nn.")
    add("--json", type=Path, metavar="FILE", help="Add the rows to this file, or replace them.")
    add("--table", type=Path, metavar="FILE", help="Only write the table of the --json file.")
    return parser.parse_args()


def _usual(name: str) -> tuple[str, ...]:
    return PRECISIONS if name in TUNED else ("bf16", "float32")


def _libraries(
    wanted: list[tuple[str, str]], variants: tuple[str, ...]
) -> list[tuple[str, list[str]]]:
    """Return the name in the report and the program of each library."""
    words = [f"{name}:{precision}" for name, precision in wanted]
    return [
        ("ours", [str(HERE / "peers/pycuda_nn_mlp.py"), *words]),
        ("jax", [str(HERE / "peers/jax_mlp.py"), *words]),
        ("torch", [str(HERE / "peers/torch_mlp.py"), ",".join(variants), *words]),
    ]


def _lines(argv: list[str], blocks: str) -> Iterator[dict]:
    """Run Python and yield the JSON objects that it prints, as they come."""
    path = os.pathsep.join([str(HERE.parent), os.environ.get("PYTHONPATH", "")])
    env = {**os.environ, "PYTHONPATH": path, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    process = subprocess.Popen(
        [sys.executable, *argv], env={**env, "BENCH_BLOCKS": blocks}, stdout=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    with process:
        for line in process.stdout or ():
            if line.startswith("{"):
                yield json.loads(line)


def _keep(report: dict, found: dict[tuple[str, str], dict], file: Path | None) -> None:
    """Put what is found into the report, sorted, and write it."""
    rows = {(row["workload"], row["precision"]): row for row in report["rows"]}
    for (name, precision), row in found.items():
        if row:
            rows[name, precision] = {"workload": name, "precision": precision, **row}
    report["rows"] = sorted(rows.values(), key=_place)
    if file:
        file.write_text(json.dumps(report, indent=1))


def table(report: dict) -> str:
    """Return the rows as a table of reStructuredText; what is faster than pycuda_nn is bold."""
    rows = [row for row in sorted(report["rows"], key=_place) if row.get("ours")]
    peers = {
        library: next(row[library]["version"] for row in rows if "version" in row.get(library, {}))
        for library in ("jax", "torch")
        if any("version" in row.get(library, {}) for row in rows)
    }
    titles = [_TITLES[peer] for peer in peers]
    cells = [["network, minibatch", "precision", "pycuda_nn", *titles, "loss"]]
    for row in rows:
        mine, jax, torch, *_ = _times(row)
        of = {"jax": jax, "torch": torch}
        name = OTHERS.get(row["workload"], row["workload"])
        compared = [_compared(mine, of[peer]) for peer in peers]
        loss = f"{row['ours']['last_loss']:.4f}"
        cells.append([name, row["precision"], f"{mine:.1f}", *compared, loss])
    widths = [max(len(line[k]) for line in cells) for k in range(len(cells[0]))]
    rule = "  ".join("=" * width for width in widths)
    lines = ["  ".join(f"{c:<{w}}" for c, w in zip(line, widths, strict=True)) for line in cells]
    lines = [rule, lines[0].rstrip(), rule, *(line.rstrip() for line in lines[1:]), rule]
    return "\n".join([*lines, "", *_legend(report["machine"], rows, peers), ""])


def _legend(machine: dict, rows: list[dict], peers: dict[str, str]) -> list[str]:
    """Return the text below the table."""
    versions = "; ".join(f"{_TITLES[peer].split()[0]} {peers[peer]}" for peer in peers)
    lines = [
        f"Microseconds for each step on one {machine['gpu']} (driver {machine['driver']}, "
        f"{machine['compiler']}, PyCUDA {machine['pycuda']};",
        f"{versions}), by ``benchmarks/trainer_gpu.py``, the libraries one after",
        "the other. In brackets: how many times as long as pycuda_nn; bold: faster than pycuda_nn.",
    ]
    if any(row["workload"] in TUNED for row in rows):
        lines.append("mnist is 784-512-512-10, netflix 512-2048-2048-512-10; b is the minibatch.")
    if any(row["workload"] not in TUNED for row in rows):
        lines.append(
            "Momentum and softmax, unless the row names others. An empty cell is not measured."
        )
    lines += [
        "pycuda_nn: the median of whole epochs of ``nn.train``, with rows shuffled in each epoch,",
        "every loss kept, and 8,192 rows evaluated after each; loss: its mean training loss in the",
        "last of them. The others run steps only:",
    ]
    if "jax" in peers:
        unrolled = all("unroll" in row["jax"] for row in rows if "scan" in row.get("jax", {}))
        how = "unrolled by 8 if faster" if unrolled else "not unrolled (by 8: 35 for mnist-b128)"
        lines.append(f"JAX all steps of an epoch in one jitted ``lax.scan``, {how}.")
    if "torch" in peers:
        earlier = any(row["torch"].get("earlier") for row in rows)
        when = ", in an earlier run on such a GPU" if earlier else ""
        lines.append(f"PyTorch one step as a CUDA graph with the fused optimizer{when}.")
    return lines


def _compared(mine: float, other: float | None) -> str:
    if not other:
        return ""
    text = f"{other:,.0f}" if other >= 100 else f"{other:.1f}"
    return f"**{text}** ({other / mine:.2f}x)" if other < mine else f"{text} ({other / mine:.1f}x)"


def _place(row: dict) -> tuple[int, str, int]:
    """Return the position of a row in the table, as a sort key."""
    name = row["workload"]
    place = NAMES.index(name) if name in NAMES else len(NAMES)
    return place, name, PRECISIONS.index(row["precision"])


def _times(row: dict) -> list[float | None]:
    """Return the microseconds of pycuda_nn, JAX and the variants of PyTorch."""
    torch = row.get("torch", {})
    times = [row.get("ours", {}).get("us_a_step"), row.get("jax", {}).get("scan")]
    return [*times, *(torch.get(name) for name in TORCH)]


def _numbers(line: dict) -> str:
    names = ("us_a_step", "scan", "unroll", *TORCH, "error")
    return ", ".join(
        f"{name} {line[name]:.1f}" if isinstance(line[name], float) else f"{name} {line[name]}"
        for name in names
        if name in line
    )


def _show(row: dict) -> None:
    text = [f"{'-' if v is None else f'{v:.1f}':>10}" for v in _times(row)]
    print(f"{row['workload']:<27}{row['precision']:<9}" + "".join(text), flush=True)


if __name__ == "__main__":
    main()
