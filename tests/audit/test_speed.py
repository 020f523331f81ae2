"""Is an audit of millions of rows fast, in bounded memory?"""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PEAK = """
import re
def peak():  # of this program in GB; `resource` would count what its parent had when it started it
    return int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) / 2**20
"""
MILLION = """
import time
import numpy as np
from sb3_fair.audit import audit
rng, n = np.random.default_rng(0), 10**6
table = {name: rng.integers(0, most, n) for name, most in dict(a=2, f=2, x=2, y=3, z=4).items()}
started = time.process_time()  # one core, whatever else runs on it
found = audit(table, action="a", group=["x", "y", "z"], feedback="f", window=500, limits={"SP": -0.2})
seconds, gigabytes = time.process_time() - started, peak()
assert len(found.windows.notions) == 8
started = time.process_time()
for _ in range(10):  # tells how fast this machine is
    codes = rng.integers(0, 24, n)
    np.unique(codes, return_inverse=True)
    np.cumsum(codes[:, None] == np.arange(8), axis=0)
print(seconds, gigabytes, time.process_time() - started)
"""
FILE = """
import sys, time
import numpy as np, pyarrow as pa
from pyarrow import csv
rng = np.random.default_rng(0)
kinds = {"a": ["yes", "no"], "f": ["1", "0", ""], "x": ["m", "f"], "y": ["BE", "FR", "NL"], "z": list("pqrs")}
if sys.argv[2] == "write":
    with open(sys.argv[1], "wb") as file:
        for part in range(20):
            columns = {name: pa.array(np.array(v)[rng.integers(0, len(v), 500_000)]) for name, v in kinds.items()}
            columns["age"] = pa.array(rng.integers(18, 65, 500_000))
            csv.write_csv(pa.table(columns), file, csv.WriteOptions(include_header=part == 0))
else:
    from sb3_fair.audit import audit_file
    started = time.perf_counter()
    found = audit_file(sys.argv[1], action="a", group=["x", "y", "z"], feedback="f", features="age", window=500)
    assert found.about["rows"] == 10**7
    print(time.perf_counter() - started, peak())
"""


def measured(program, *arguments):
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    command = [sys.executable, "-c", PEAK + program, *map(str, arguments)]
    environment = {"PATH": "", "PYTHONPATH": str(ROOT), **threads}
    ran = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return [float(figure) for figure in ran.stdout.split()]


@pytest.mark.slow
def test_a_million_rows_take_less_than_five_seconds_and_a_gigabyte():
    seconds, gigabytes, by_numpy = measured(MILLION)
    print(f"{seconds:.1f} s, {gigabytes:.2f} GB; plain numpy takes {by_numpy:.1f} s")
    assert seconds < 5 * max(1, by_numpy) and gigabytes < 1  # on a slow machine, numpy takes longer than a second too


@pytest.mark.slow
def test_ten_million_rows_of_a_file_take_less_than_a_gigabyte(tmp_path):
    measured(FILE, tmp_path / "a.csv", "write")
    seconds, gigabytes = measured(FILE, tmp_path / "a.csv", "read")
    print(f"{seconds:.1f} s, {gigabytes:.2f} GB")
    assert gigabytes < 1
