"""NumPy's side of the search benchmark: python top_k.py make|time DIR ROWS DIM K

`make` draws unit rows and queries (seed 0) into DIR/gallery.f32 and DIR/queries.f32; `time` measures
a matrix-vector product and argpartition a query, and checks DIR/found.txt, which the Rust example
wrote, against sums in f64: at each rank the item found may be at most 1e-6 off the best.
"""
import sys
import time
from pathlib import Path

import numpy as np

command, folder, rows, dim, k = sys.argv[1], Path(sys.argv[2]), *map(int, sys.argv[3:6])
QUERIES = 21
if command == "make":
    rng = np.random.default_rng(0)
    for name, count in [("gallery", rows), ("queries", QUERIES)]:
        with open(folder / f"{name}.f32", "wb") as out:
            for start in range(0, count, 10_000):
                block = rng.standard_normal((min(10_000, count - start), dim), dtype=np.float32)
                block /= np.linalg.norm(block, axis=1, keepdims=True)
                out.write(block.tobytes())
    sys.exit()

gallery = np.fromfile(folder / "gallery.f32", dtype=np.float32).reshape(rows, dim)
queries = np.fromfile(folder / "queries.f32", dtype=np.float32).reshape(QUERIES, dim)
times = []
for query in queries:
    began = time.perf_counter()
    similarity = gallery @ query
    best = np.argpartition(-similarity, k)[:k]
    best = best[np.argsort(-similarity[best], kind="stable")]
    times.append((time.perf_counter() - began) * 1e3)
print(f"numpy {np.__version__}: median {np.median(times):.2f} ms ({min(times):.2f} to {max(times):.2f})")

found = [list(map(int, line.split())) for line in open(folder / "found.txt")]
worst = 0.0
for query, indices in zip(queries, found, strict=True):
    parts = np.array_split(gallery, 50)
    exact = np.concatenate([part.astype(np.float64) @ query.astype(np.float64) for part in parts])
    best = -np.sort(-exact)[:k]
    worst = max(worst, np.abs(exact[indices] - best).max())
print(f"largest distance from the oracle's order: {worst:.2e}", "ok" if worst < 1e-6 else "FAILED")
