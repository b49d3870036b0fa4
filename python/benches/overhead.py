"""What Python costs: a fit beside the command line's, in turn, and a million samples on their way.

    python overhead.py PROGRAM [SYSTEM [TIMES]]      for example ../../target/release/latens yeast-glycolysis 5

Both read the same model file and record and write the same run folder, without the page; the time to import
the package is told apart. Processor time of all threads is what to compare on a busy machine.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import latens
import numpy as np

FIT = """
import time, warnings
imported = time.process_time()
import latens
warnings.simplefilter("ignore")
wall, cpu = time.perf_counter(), time.process_time()
model = latens.Model.from_file("model.toml")
model.fit("record.csv", progress=False).save("python", force=True)
print(time.perf_counter() - wall, time.process_time() - cpu, cpu - imported)
"""


def fits(program: str, system: str, times: int) -> None:
    Path("model.toml").write_text(getattr(latens.systems, system.replace("-", "_"))().text, encoding="utf-8")
    subprocess.run([program, "simulate", "model.toml", "-o", "record.csv"], check=True, capture_output=True)
    rows = []
    for _ in range(times):
        before, wall = os.times(), time.perf_counter()
        command = [program, "fit", "model.toml", "record.csv", "--no-report", "-q", "-o", "program", "--force"]
        subprocess.run(command, check=True, capture_output=True)
        wall, after = time.perf_counter() - wall, os.times()
        cpu = after.children_user + after.children_system - before.children_user - before.children_system
        told = subprocess.run([sys.executable, "-c", FIT], check=True, capture_output=True, text=True).stdout
        own_wall, own_cpu, imported = map(float, told.split())
        rows.append((wall, own_wall, cpu, own_cpu, imported))
        print(f"clock: program {wall:.2f} s, Python {own_wall:.2f} s; processor: program {cpu:.2f} s, Python {own_cpu:.2f} s")
    for file in ("states.csv", "weights.safetensors"):
        same = Path("program", file).read_bytes() == Path("python", file).read_bytes()
        print(f"{file}: {'the same bytes' if same else 'NOT the same'}")
    clock, cpu = (statistics.median(row[k + 1] / row[k] for row in rows) for k in (0, 2))
    print(f"{system}: Python over program {clock:.3f} by the clock, {cpu:.3f} of the processor (medians)")
    print(f"and {statistics.median(row[4] for row in rows):.2f} s of the processor to import the package")


def million() -> None:
    def used() -> float:
        line = next(line for line in open("/proc/self/status", encoding="ascii") if line.startswith("VmRSS"))
        return int(line.split()[1]) / 1024

    model, count = latens.systems.hodgkin_huxley(), 1_000_000
    t = np.arange(count) * 0.01
    y, u = ({name: np.sin(t + k) for k, name in enumerate(names)} for names in (model.measured, model.inputs))
    record = latens.Record(t=t, y=y, u=u)
    shared = all(np.shares_memory(record.y[name], y[name]) for name in y)
    before, clock = used(), time.perf_counter()
    source = record._source(model._raw)
    clock, taken = time.perf_counter() - clock, used() - before
    data = 8 * count * (1 + len(y) + len(u)) / 2**20
    print(f"a million samples, {data:.0f} MB: the record shares memory: {shared}; the library takes {taken:.0f} MB, {clock:.2f} s")
    del source


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    chosen = os.path.abspath(sys.argv[1])
    os.chdir(tempfile.mkdtemp(prefix="latens-bench-"))
    fits(chosen, sys.argv[2] if len(sys.argv) > 2 else "harmonic-oscillator", int(sys.argv[3]) if len(sys.argv) > 3 else 3)
    million()
