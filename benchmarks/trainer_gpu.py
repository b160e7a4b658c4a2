"""Compare the trainer on one GPU with PyTorch and JAX: same network, data and optimizer.

    python benchmarks/trainer_gpu.py --workload mnist-b128 --precision bf16
    python benchmarks/trainer_gpu.py --json benchmarks/results/trainer_gpu.json

pycuda_nn runs whole epochs of ``nn.train``, keeps every loss, and evaluates 8,192 rows after each
epoch; PyTorch and JAX only run steps. The libraries run one after the other, in separate processes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
NAMES = ("mnist-b128", "netflix-b256", "netflix-b1024", "netflix-b8192")
PRECISIONS = ("bf16", "fp16", "tf32", "float32")
TORCH = ("graph", "compiled graph")  # eager varies by half from run to run


def main() -> None:
    """Measure every workload and precision, and print a row for each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add, known = parser.add_argument, ", ".join(NAMES)
    add("--workload", action="append", metavar="NAME", help=f"One of {known}. Repeatable.")
    add("--precision", action="append", metavar="NAME", help=f"One of {', '.join(PRECISIONS)}. "
        "Default: bf16. Repeatable.")  # fmt: skip
    add("--skip-compiled", action="store_true", help="Skip torch.compile, which takes a minute.")
    add("--ours-only", action="store_true", help="Measure only pycuda_nn.")
    add("--json", type=Path, metavar="FILE", help="Add the rows to this file, or replace them.")
    add("--table", type=Path, metavar="FILE", help="Only write the table of the --json file.")
    options = parser.parse_args()
    if options.table:
        options.table.write_text(table(json.loads(options.json.read_text())))
        return
    variants = () if options.ours_only else TORCH[:1] if options.skip_compiled else TORCH
    report = {"machine": {}, "rows": []}
    if options.json and options.json.exists():
        report = json.loads(options.json.read_text())
    titles = f"{'us per step':<15}{'':<8}{'pycuda_nn':>10}{'JAX':>8}"
    print(titles + "".join(f"{variant:>16}" for variant in TORCH))
    for workload in options.workload or NAMES:
        for precision in options.precision or ("bf16",):
            row = _measure(workload, precision, variants)
            report["machine"] = row.pop("machine", report["machine"])
            others = [r for r in report["rows"] if _place(r) != _place(row)]
            report["rows"] = [*others, row]
            _show(row)
            if options.json:
                options.json.write_text(json.dumps(report, indent=1))
    print(report["machine"])


def table(report: dict) -> str:
    """Return the rows as a table of reStructuredText."""
    cells = [("workload", "precision", "pycuda_nn", "JAX", "PyTorch graph")]
    rows = sorted(report["rows"], key=_place)
    for row in rows:
        ours, jax, torch = row.get("ours") or {}, row.get("jax") or {}, row.get("torch") or {}
        mine = ours.get("us_a_step")
        others = (jax.get("scan"), torch.get("graph"))
        compared = [f"{v:,.0f} ({v / mine:.1f}x)" if v and mine else "" for v in others]
        cells.append((row["workload"], row["precision"], f"{mine:.1f}", *compared))
    widths = [max(len(line[k]) for line in cells) for k in range(len(cells[0]))]
    rule = "  ".join("=" * width for width in widths)
    lines = ["  ".join(f"{c:<{w}}" for c, w in zip(line, widths, strict=True)) for line in cells]
    lines = [rule, lines[0].rstrip(), rule, *(line.rstrip() for line in lines[1:]), rule]
    versions = {
        name: row[name]["version"]
        for row in report["rows"]
        for name in ("jax", "torch")
        if row.get(name)
    }
    machine = report["machine"]
    unrolled = all("unroll" in (row.get("jax") or {}) for row in report["rows"])
    how = "unrolled if faster" if unrolled else "not unrolled (by 8: 35 for mnist-b128 in bf16)"
    return "\n".join(
        [
            *lines,
            "",
            f"Microseconds for each step on one {machine['gpu']} (driver {machine['driver']}, "
            f"{machine['compiler']}, PyCUDA {machine['pycuda']};",
            f"JAX {versions.get('jax')}, PyTorch {versions.get('torch')}), by "
            "``benchmarks/trainer_gpu.py``, the programs of a row one after",
            "the other. In brackets: how many times as long as pycuda_nn. mnist is 784-512-512-10,",
            "netflix 512-2048-2048-512-10; b is the minibatch. pycuda_nn: the median of whole",
            "epochs of ``nn.train``, with rows shuffled in each epoch, every loss kept, and",
            "8,192 rows evaluated after each. The others run steps only: JAX all steps of an",
            f"epoch in one jitted ``lax.scan``, {how};",
            "PyTorch one step as a CUDA graph with the",
            "fused optimizer.",
            "",
        ]
    )


def _place(row: dict) -> tuple[int, int]:
    """Return the position of a row in the table, as a sort key."""
    return NAMES.index(row["workload"]), PRECISIONS.index(row["precision"])


def _measure(workload: str, precision: str, variants: tuple[str, ...]) -> dict[str, object]:
    row: dict[str, object] = {"workload": workload, "precision": precision}
    words = ["bench", "train", "--workload", workload, "--precision", precision, "--json"]
    ours = _run(["-m", "pycuda_nn", *words])
    if ours:
        row["machine"] = ours["machine"]
        row["ours"] = ours["rows"][0]
    if not variants:
        return row
    row["jax"] = _run([str(HERE / "peers/jax_mlp.py"), workload, precision])
    row["torch"] = _run([str(HERE / "peers/torch_mlp.py"), workload, precision, ",".join(variants)])
    return row


def _run(argv: list[str]) -> dict[str, object]:
    path = os.pathsep.join([str(HERE.parent), os.environ.get("PYTHONPATH", "")])
    env = {**os.environ, "PYTHONPATH": path, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    done = subprocess.run(
        [sys.executable, *argv], env=env, capture_output=True, text=True, check=False
    )
    if done.returncode:
        print(done.stderr[-1500:], file=sys.stderr)
        return {}
    return json.loads(done.stdout.splitlines()[-1])


def _show(row: dict[str, object]) -> None:
    ours, jax, torch = row.get("ours") or {}, row.get("jax") or {}, row.get("torch") or {}
    cells = [ours.get("us_a_step"), jax.get("scan"), *(torch.get(name) for name in TORCH)]
    widths = (10, 8, 16, 16)
    text = [f"{'-' if v is None else f'{v:.1f}':>{w}}" for v, w in zip(cells, widths, strict=True)]
    print(f"{row['workload']:<15}{row['precision']:<8}" + "".join(text), flush=True)


if __name__ == "__main__":
    main()
