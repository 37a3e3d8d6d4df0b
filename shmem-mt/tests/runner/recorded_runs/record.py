#!/usr/bin/env python3
"""Makes what test_forecast.py replays of a run folder: record.py DIR PROFILE NAMES > FILE, with the benchmarks that
were run. Of each program start how long it took by round, and the values of the point that varies most."""

import json
import sys

import numpy
from shmem_mt.catalogue import catalogue, plan
from shmem_mt.runner.results import RunFolder, load_machine, numbered_rounds

directory, profile, names = sys.argv[1:]
folder, contents = RunFolder.read(directory), load_machine(directory)
benchmarks = catalogue.select(names.split(","))
recorded = []
for start in plan.starts(plan.PROFILES[profile], benchmarks, plan.Choices(), contents["machine"]["cores"]):
    for label in (one["label"] for one in contents["implementations"]):
        keys = [start.key(label, number) for number in range(plan.PROFILES[profile].most_rounds)]
        seconds = [folder.seconds_of(key) for key in keys if folder.has_job(key)]
        points = {point for key in keys for point in folder.results_of(key)}
        if not points:
            continue
        values = [[float(numpy.median(v)) for v in numbered_rounds(folder.result(p)).values()] for p in points]
        widest = max(values, key=lambda of_point: numpy.std(of_point) / abs(numpy.median(of_point)))
        about = {"program": start.program, "pes": start.pes, "threads": start.threads, "rounds": start.rounds}
        about |= {"estimate_s": round(start.estimate_s, 3), "seconds": seconds}
        recorded.append(about | {"values": [float(f"{value:.3g}") for value in widest]})
lines = ",\n".join("  " + json.dumps(one) for one in recorded)
print(f'{{"profile": "{profile}", "cores": {contents["machine"]["cores"]}, "starts": [\n{lines}\n]}}')
