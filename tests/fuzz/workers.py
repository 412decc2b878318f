"""Processes that fuzz until the time is up, each within bounds of memory; a parent that watches them.

A crash or a hang inside a C library takes its process with it. The parent knows which batch that was, and
runs it again, writing down each input first: the last one written is the culprit.
"""

from __future__ import annotations

import multiprocessing
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

from tests.fuzz.batch import SECONDS_PER_INPUT, Tally, keep, run_batch, watched
from tests.fuzz.corpus import seeds

SPAWN = multiprocessing.get_context("spawn")
REPORT_SECONDS = 1.0
STALL_SECONDS = 6 * SECONDS_PER_INPUT
REPLAYED_BATCHES = 100  # more than a worker runs between two reports


@dataclass(frozen=True, slots=True)
class Plan:
    """What to run."""

    seconds: float
    seed: int
    memory_mib: int
    folder: Path

    def batch_seed(self, worker: int, batch: int) -> str:
        return f"{self.seed}-{worker}-{batch}"


@dataclass(slots=True)
class Worker:
    """A process, what it has reported, and when."""

    number: int
    process: BaseProcess
    pipe: Connection
    batch: int = 0
    inputs: int = 0
    failures: int = 0
    outcomes: set[str] = field(default_factory=set)
    heard: float = field(default_factory=time.monotonic)
    done: bool = False


def _bound_memory(mib: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (mib << 20, mib << 20))


def _work(plan: Plan, number: int, pipe: Connection) -> None:
    _bound_memory(plan.memory_mib)
    corpus, tally = seeds(), Tally()
    end = time.monotonic() + plan.seconds
    batch, told = 0, 0.0
    with watched():
        while time.monotonic() < end:
            run_batch(corpus, plan.batch_seed(number, batch), tally)
            batch += 1
            for data, account in tally.failures:
                keep(plan.folder, data, account)
            if tally.failures or time.monotonic() - told > REPORT_SECONDS:
                _tell(pipe, batch, tally)
                told = time.monotonic()
        _tell(pipe, batch, tally)
    pipe.send(None)


def _tell(pipe: Connection, batch: int, tally: Tally) -> None:
    pipe.send((batch, tally.inputs, len(tally.failures), frozenset(tally.outcomes)))
    tally.inputs = 0
    tally.failures.clear()
    tally.outcomes.clear()


def _replay(plan: Plan, seed: str, path: Path) -> None:
    _bound_memory(plan.memory_mib)
    with watched():
        run_batch(seeds(), seed, Tally(), before=path.write_bytes)


def run(plan: Plan, workers: int, progress: Callable[[list[Worker]], None]) -> list[Worker]:
    """Fuzz until the time is up or a worker is lost; *progress* is called every second or so."""
    team = [_started(plan, number) for number in range(workers)]
    try:
        while not all(worker.done for worker in team):
            for worker in team:
                _listen(worker)
                if not worker.done and _is_lost(worker):
                    _locate(plan, worker)
            progress(team)
    finally:
        for worker in team:
            worker.process.kill()
            worker.process.join()
    return team


def _started(plan: Plan, number: int) -> Worker:
    ours, theirs = SPAWN.Pipe(duplex=False)
    process = SPAWN.Process(target=_work, args=(plan, number, theirs), daemon=True)
    process.start()
    theirs.close()
    return Worker(number, process, ours)


def _listen(worker: Worker) -> None:
    try:
        while not worker.done and worker.pipe.poll(0.2):
            message = worker.pipe.recv()
            worker.heard = time.monotonic()
            if message is None:
                worker.done = True
            else:
                worker.batch = message[0]
                worker.inputs += message[1]
                worker.failures += message[2]
                worker.outcomes |= message[3]
    except EOFError:
        worker.process.join()


def _is_lost(worker: Worker) -> bool:
    return worker.process.exitcode is not None or time.monotonic() - worker.heard > STALL_SECONDS


def _locate(plan: Plan, worker: Worker) -> None:
    """Find the input that cost us the worker, among the batches that it had begun since its last report."""
    worker.done = True
    worker.failures += 1
    worker.process.kill()
    worker.process.join()
    path = plan.folder / f"lost-{plan.seed}-{worker.number}.puffin"
    plan.folder.mkdir(parents=True, exist_ok=True)
    for batch in range(worker.batch, worker.batch + REPLAYED_BATCHES):
        seed = plan.batch_seed(worker.number, batch)
        again = SPAWN.Process(target=_replay, args=(plan, seed, path), daemon=True)
        again.start()
        again.join(STALL_SECONDS)
        exit_code = again.exitcode
        if exit_code != 0:
            again.kill()
            again.join()
            reason = "a hang" if exit_code is None else f"exit code {exit_code}"
            path.with_suffix(".txt").write_text(f"{reason} in batch {seed}\n")
            return
    path.with_suffix(".txt").write_text(f"worker lost; exit code {worker.process.exitcode}, not seen again\n")
