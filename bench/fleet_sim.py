"""Waiting times of a fleet: real workers on one PostgreSQL, and a simulation of them, which then sizes larger fleets.

    python bench/fleet_sim.py [--answers N] [--judge lexical|waits]

A run of one worker gives what each step costs, and readings in parallel how much busy cores slow each other down. Runs
of two and of four workers are then measured, and simulated from the same arrivals; the means of measured and simulated
waiting times must agree within 15 %. Takes four minutes. Needs Debian's `postgresql`, and a quiet machine: what other
processes use on average is printed and simulated, but not how they take turns.
"""

import argparse
import os
import statistics
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

HOME = Path(__file__).parents[1]
sys.path.insert(0, str(HOME / "tests"))
from fleet.measured import Plan, Run, run, slowdowns  # noqa: E402 - it needs what is among the tests
from fleet.simulated import Costs, Fleet, costs_of, simulate  # noqa: E402 - the same

TOLERANCE = 0.15
LOAD = 0.6  # share of the capacity
CORES = os.cpu_count() or 2


def rate_of(plan: Plan, costs: Costs) -> float:
    """Answers per second that load a fleet by `LOAD`."""
    own, server = (costs.slowdowns[-1] * one for one in costs.per_answer)
    if plan.judge == "waits":
        return LOAD * min(plan.workers * plan.concurrency / plan.wait, CORES / (own + server))
    return LOAD * min(plan.workers / (own + server), CORES / (own + server))


def line(name: str, waits: Sequence[float]) -> str:
    """Figures of waiting times."""
    ordered = sorted(waits)
    p95 = ordered[int(0.95 * (len(ordered) - 1))]
    mean, median = statistics.fmean(waits), statistics.median(waits)
    return f"  {name:<10} mean {mean:7.3f} s  median {median:7.3f} s  p95 {p95:7.3f} s"


def compared(plan: Plan, costs: Costs) -> float:
    """Measure and simulate a run. Returns the relative difference of the means."""
    measured = run(plan)
    simulated = simulate(
        measured,
        costs,
        workers=plan.workers,
        cores=CORES,
        judge=plan.judge,
        wait=plan.wait,
        concurrency=plan.concurrency,
    )
    difference = statistics.fmean(simulated) / statistics.fmean(measured.waits) - 1.0
    pace = f"{plan.rate:.0f}/s" if plan.rate else "all at once"
    cpu = 1e3 * measured.worker_cpu / plan.answers, 1e3 * measured.server_cpu / plan.answers
    print(f"{plan.workers} workers, {plan.answers} answers, {pace}; {plan.answers / measured.seconds:.0f} verdicts/s,")
    size = measured.stored_bytes / plan.answers / 1024, measured.log_bytes / plan.answers / 1024
    print(f"  stored for each answer: {size[0]:.1f} KiB, and {size[1]:.1f} KiB of write-ahead log")
    print(f"  CPU for each answer: worker {cpu[0]:.2f} ms, server {cpu[1]:.2f} ms", end="; ")
    print(f"others used {measured.others:.2f} cores")
    print(line("measured", measured.waits))
    print(line("simulated", simulated))
    print(f"  difference of the means {difference:+.1%}", flush=True)
    return difference


def calibrated(judge: str, answers: int, rate: float, busy: tuple[float, ...]) -> tuple[Run, Costs]:
    """Run one worker, and print what its steps cost.

    Costs are measured at the kind of load that they are used for: a reading after a pause costs a fifth more than one
    of many in a row.

    Args:
        judge: Kind of the judge.
        answers: Number of answers.
        rate: Answers per second; 0 for all at once.
        busy: By how much work takes longer while 1, 2 ... cores are busy.
    """
    measured = run(Plan(1, judge, rate, answers))
    costs = costs_of(measured, busy)
    admitted = sum(count for _, count, _, _ in measured.admissions)
    load = f"{rate:.0f}/s" if rate else "all at once"
    print(f"judge {judge}, {load}: costs in ms, fixed and for each answer, of worker and server", end="; ")
    print(f"others used {measured.others:.2f} cores")
    for name, (own, server) in (("lease", costs.lease), ("settle", costs.settle)):
        steps = ", ".join(f"{1e3 * one.fixed:.2f} + {1e3 * one.each:.3f} n" for one in (own, server))
        print(f"  {name:<7} {steps}")
    wall = sum(seconds for _, _, seconds, _ in measured.admissions)
    print(f"  read {1e3 * costs.read:.2f}, loop {1e3 * costs.loop:.2f}, admit {1e3 * wall / admitted:.2f}")
    print(f"  slower by busy cores: {', '.join(f'{one:.2f}' for one in costs.slowdowns)}")
    return measured, costs


def size(costs: Costs) -> None:
    """Simulate larger fleets with a database of its own cores, at rates of judged answers."""
    own, server = costs.per_answer
    print("fleets of workers with one core each, at 60 % of their capacity")
    for judged in (10, 100, 1000):
        workers = max(2, -(-int(judged * own * 1000) // 600))
        arrivals = {f"r{index}": index / judged for index in range(20 * judged)}
        fleet = Fleet(
            arrivals, workers, replace(costs, slowdowns=(1.0,)), cores=workers + max(1, round(judged * server / 0.6))
        )
        settled = fleet.run()
        waits = [settled[key] - at for key, at in arrivals.items()]
        print(f"{judged} judged/s: {workers} workers, {judged * server:.2f} cores of the database")
        print(line("simulated", waits))


def main() -> None:
    """Measure, simulate, compare."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--answers", type=int, default=1500)
    options.add_argument("--judge", choices=["lexical", "waits"], action="append")
    chosen = options.parse_args()
    differences = []
    busy = slowdowns(CORES)
    for judge in chosen.judge or ["waits", "lexical"]:
        few = min(chosen.answers, 600)
        _, costs = calibrated(judge, few, 20.0 if judge == "waits" else 60.0, busy)
        at_once = calibrated(judge, few, 0.0, busy)[1] if judge == "lexical" else costs
        for workers in (2, 4):
            plan = Plan(workers, judge, 0.0, chosen.answers)
            differences.append(compared(Plan(workers, judge, rate_of(plan, costs), chosen.answers), costs))
            if judge == "lexical":
                differences.append(compared(plan, at_once))
        if judge == "lexical":
            size(costs)
    if max(map(abs, differences)) > TOLERANCE:
        raise SystemExit(f"the simulation is off by more than {TOLERANCE:.0%}")


if __name__ == "__main__":
    main()
