"""One fit of many records: in one process with two threads, with two processes, and on a local Ray cluster with two
workers, one of which is killed during the fit. Whether the bits are the same, and what workers cost, as ratios.

    python python/benches/workers.py [--records 1000] [--repeats 3] [--json]

Wall time is the median of the repeats, which take turns. A worker's start is part of its fit; that of Ray is not.
Processor time is that of the process that fits, and of processes that it has started and that have ended: not that of
Ray's workers.
"""

import argparse
import contextlib
import hashlib
import json
import os
import resource
import statistics
import time
import warnings

import psutil
import ray

import latens

TEXT = """
[time]
step = 0.05
[states.z]
derivative = "v"
start = 1
[states.v]
derivative = "acceleration(z, v)"
start = 0
[networks.acceleration]
layers = ["10 tanh"]
[measurements]
z = "z"
[truth]
v = "-z - 0.2*v*abs(v)"
[simulation]
steps = 60
"""


def spent():
    """Seconds of processor time, of this process and of its children that have ended."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return [usage.ru_utime + usage.ru_stime for usage in usages]


def bits(fit):
    """A digest of all that was learned and of the states of all records."""
    digest = hashlib.sha256()
    for name, file in sorted(fit._raw.to_files()):
        if name == "weights.safetensors" or name.startswith("states"):
            digest.update(name.encode() + file)
    return digest.hexdigest()


class Killer:
    """Kills one of two workers in the third stage."""

    def __init__(self):
        self.killed = 0

    def __call__(self, progress):
        if not self.killed and progress.number > 2:
            for process in psutil.Process().children(recursive=True):
                with contextlib.suppress(psutil.Error):
                    if "ray::Desk" in " ".join(process.cmdline()):
                        process.kill()
                        self.killed += 1
                        return


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--records", type=int, default=1000)
    a.add_argument("--repeats", type=int, default=3)
    a.add_argument("--json", action="store_true")
    o = a.parse_args()
    model = latens.Model.from_string(TEXT)
    starts = [{"z": 0.5 + 2 * (k * 0.618034 % 1), "v": 2 * (k * 0.414214 % 1) - 1} for k in range(o.records)]
    records = [model.simulate(seed=1 + k, noise="2%", start=start) for k, start in enumerate(starts)]
    warnings.simplefilter("ignore", latens.FitWarning)
    os.environ["RAY_worker_niceness"] = "0"  # by default whatever else runs here comes first
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
    ways = {
        "one process, two threads": lambda: {"threads": 2, "progress": False},
        "two processes": lambda: {"backend": "processes", "workers": 2, "progress": False},
        "Ray, two workers": lambda: {"backend": "ray", "workers": 2, "progress": False},
        "Ray, two workers, one killed": lambda: {"backend": "ray", "workers": 2, "progress": Killer()},
    }
    seconds, processor, digests = ({way: [] for way in ways} for _ in range(3))
    killed = 0
    for _ in range(o.repeats):
        for way, options in ways.items():
            given = options()
            begun, before = time.perf_counter(), spent()
            fit = model.fit(records, simplify=False, **given)
            seconds[way].append(time.perf_counter() - begun)
            processor[way].append([after - was for after, was in zip(spent(), before)])
            digests[way].append(bits(fit))
            killed += getattr(given["progress"], "killed", 0)
    ray.shutdown()
    assert killed == o.repeats, "no worker was killed"
    first = statistics.median(seconds["one process, two threads"])
    rows = [
        {
            "way": way,
            "seconds": statistics.median(times),
            "all": times,
            "ratio": statistics.median(times) / first,
            "own": statistics.median(here for here, _ in processor[way]),
            "processes": statistics.median(there for _, there in processor[way]),
            "same": set(digests[way]) == {digests["one process, two threads"][0]},
        }
        for way, times in seconds.items()
    ]
    found = {"records": o.records, "samples": len(records[0].t), "parameters": len(fit._raw.theta()[0]), "rows": rows}
    if o.json:
        print(json.dumps(found))
        return
    for row in rows:
        same = "same bits" if row["same"] else "OTHER BITS"
        times = f"{row['seconds']:7.1f} s {row['ratio']:5.2f}, processor {row['own']:.1f} s + {row['processes']:.1f} s"
        print(f"{row['way']:30} {times}  {same}")


if __name__ == "__main__":
    main()
