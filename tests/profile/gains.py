#!/usr/bin/env python3
"""What the advice of profiles promises, and what following it gains: for each disease of sick.c.

    gains.py BUILD [ROUNDS]    a line for each: seconds without a profile (sick, cured), the gain, the gain that was
                               promised by a profiled run, and the latter divided by the former

Medians of ROUNDS (5) runs in turns. Nothing else may run meanwhile. No test: times are not for tests."""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile


def main():
    os.environ["HEDDLE_BUILD"] = sys.argv[1]
    import test_profile

    build, rounds = pathlib.Path(sys.argv[1]).resolve(), int(sys.argv[2]) if len(sys.argv) > 2 else 5
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "sick"
        subprocess.run([build / "bin/oshcc", "-O2", "-g", "-pthread", test_profile.HERE / "sick.c", "-o", program],
                       check=True)

        def run(n, settings, *words, profile=()):
            command = [build / "bin/oshrun", "-n", str(n), *profile, program, *words]
            done = subprocess.run(command, cwd=folder, text=True, env={**os.environ, **settings}, capture_output=True,
                                  check=True, timeout=300)
            return float(done.stdout.splitlines()[-1])  # UCX may say something there, too

        print(f"{'rule':22} {'sick':>10} {'cured':>10} {'gain':>10} {'promised':>10}  promised / gain")
        for disease in test_profile.DISEASES:
            n, settings = test_profile.job_of(disease)
            sick, cured, promised = [], [], []
            for _ in range(rounds):
                sick.append(run(n, settings, disease, "sick"))
                cured.append(run(n, settings, disease, "cured"))
                run(n, settings, disease, "sick", profile=("--profile=p.json",))
                found = json.loads((pathlib.Path(folder) / "p.json").read_text())["advice"]
                promised.append(sum(one["gain_seconds"] for one in found if one["rule"] == disease))
            sick_s, cured_s, promised_s = map(statistics.median, (sick, cured, promised))
            gain = sick_s - cured_s
            print(f"{disease:22} {sick_s:10.6f} {cured_s:10.6f} {gain:10.6f} {promised_s:10.6f}  "
                  f"{promised_s / gain:.2f}")


if __name__ == "__main__":
    main()
