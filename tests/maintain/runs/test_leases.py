"""Never two holders at a time: by the statements, by many processes, and after a death."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import ClauseElement, event, update
from sqlalchemy.dialects import postgresql

from rookery.maintain.runs.database import open_engine
from rookery.maintain.runs.leases import LEASES, Leases, LeaseTakenError
from rookery.maintain.runs.processes import machine


class Clock:
    def __init__(self) -> None:
        self.time = 1000.0

    def __call__(self) -> float:
        return self.time


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'leases.db'}"


@pytest.fixture
def leases(url: str, clock: Clock) -> Leases:
    return Leases(open_engine(url), ttl=60, clock=clock, beating=False)


def rewrite(leases: Leases, **values: object) -> None:
    with leases.engine.begin() as connection:
        connection.execute(update(LEASES).values(values))


def test_one_holder_a_table(leases: Leases) -> None:
    with leases.hold("a") as first:
        with pytest.raises(LeaseTakenError, match=f"by process {os.getpid()}") as caught, leases.hold("a"):
            pass
        assert caught.value.hint
        with leases.hold("b") as other:
            assert {first.key, other.key} == {"a", "b"}
    with leases.hold("a") as again:
        assert not again.lost


def test_given_back_when_the_body_fails(leases: Leases) -> None:
    with pytest.raises(ZeroDivisionError), leases.hold("a"):
        raise ZeroDivisionError
    assert leases.row("a") is None


def test_expires_to_the_second(leases: Leases, clock: Clock) -> None:
    first = leases.acquire("a")
    clock.time += 59.9
    assert not first.lost
    with pytest.raises(LeaseTakenError):
        leases.acquire("a")
    clock.time += 0.1
    assert first.lost
    second = leases.acquire("a")
    assert not second.lost
    first.release()  # of another by now: nothing happens
    row = leases.row("a")
    assert row is not None
    assert row.holder == second.holder


def test_beats_put_the_end_off(leases: Leases, clock: Clock) -> None:
    lease = leases.acquire("a")
    for _ in range(10):
        clock.time += 50
        lease.beat()
        assert not lease.lost
    with pytest.raises(LeaseTakenError):
        leases.acquire("a")


def test_lost_to_another(leases: Leases) -> None:
    lease = leases.acquire("a")
    rewrite(leases, holder="another")
    assert not lease.lost
    lease.beat()
    assert lease.lost
    rewrite(leases, holder=lease.holder)
    lease.beat()
    assert lease.lost  # for good


def test_a_database_that_fails_loses_it_at_its_end_only(leases: Leases, clock: Clock) -> None:
    lease = leases.acquire("a")
    with leases.engine.begin() as connection:
        connection.exec_driver_sql("ALTER TABLE rookery_leases RENAME TO away")
    clock.time += 20
    lease.beat()
    assert not lease.lost
    with leases.engine.begin() as connection:
        connection.exec_driver_sql("ALTER TABLE away RENAME TO rookery_leases")
    clock.time += 20
    lease.beat()  # renewed to 100 from the start
    with leases.engine.begin() as connection:
        connection.exec_driver_sql("DROP TABLE rookery_leases")
    clock.time += 59
    lease.beat()
    assert not lease.lost
    clock.time += 1
    assert lease.lost
    lease.release()  # says so, and does not raise


def test_thread_renews(url: str, clock: Clock) -> None:
    """With a life of 30 ms the thread beats at once; the test waits for its mark, not for a time."""
    leases = Leases(open_engine(url), ttl=0.03, clock=clock)
    with leases.hold("a") as lease:
        clock.time += 0.02
        until = threading.Event()
        for _ in range(1000):
            row = leases.row("a")
            assert row is not None
            if row.expires > 1000.04:
                break
            until.wait(0.01)
        assert row.expires == pytest.approx(1000.05)
        assert not lease.lost


class TestDeadProcess:
    def test_on_this_machine_is_taken_over_at_once(self, leases: Leases) -> None:
        leases.acquire("a")
        dead = subprocess.Popen([sys.executable, "-c", ""])
        dead.wait()
        rewrite(leases, pid=dead.pid)
        leases.acquire("a")

    def test_on_another_machine_is_waited_for(self, leases: Leases, clock: Clock) -> None:
        leases.acquire("a")
        dead = subprocess.Popen([sys.executable, "-c", ""])
        dead.wait()
        rewrite(leases, pid=dead.pid, host=machine() + "x")
        with pytest.raises(LeaseTakenError, match=f"by process {dead.pid} on "):
            leases.acquire("a")
        clock.time += 60
        leases.acquire("a")

    def test_only_one_takes_over(self, url: str, clock: Clock) -> None:
        """Two have seen the same dead holder; the second finds another in its place."""
        leases = Leases(open_engine(url), ttl=60, clock=clock, beating=False)
        leases.acquire("a")
        dead = subprocess.Popen([sys.executable, "-c", ""])
        dead.wait()
        rewrite(leases, pid=dead.pid)
        barrier = threading.Barrier(4)
        won: list[str] = []

        def take() -> None:
            barrier.wait()
            try:
                won.append(leases.acquire("a").holder)
            except LeaseTakenError:
                return

        threads = [threading.Thread(target=take) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(won) == 1


CONTENDER = """
import os, sys, time
from pathlib import Path
from rookery.maintain.runs.database import open_engine
from rookery.maintain.runs.leases import Leases, LeaseTakenError

url, folder, wanted = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
leases = Leases(open_engine(url))
mark, count = folder / "inside", folder / "count"
done = 0
while done < wanted:
    try:
        with leases.hold("table"):
            os.close(os.open(mark, os.O_CREAT | os.O_EXCL))  # fails if another is inside
            count.write_text(str(int(count.read_text()) + 1))
            os.unlink(mark)
            done += 1
    except LeaseTakenError:
        time.sleep(0)
"""


def test_many_processes(url: str, tmp_path: Path) -> None:
    (tmp_path / "count").write_text("0")
    command = [sys.executable, "-c", CONTENDER, url, str(tmp_path), "15"]
    contenders = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(6)]
    ends = [contender.communicate()[1] for contender in contenders]
    assert ends == [""] * 6
    assert (tmp_path / "count").read_text() == "90"


HOLDER = """
import sys
from rookery.maintain.runs.database import open_engine
from rookery.maintain.runs.leases import Leases

with Leases(open_engine(sys.argv[1])).hold("table"):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(url: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()


def test_killed(holder: subprocess.Popen[str], url: str) -> None:
    leases = Leases(open_engine(url))
    with pytest.raises(LeaseTakenError, match=f"process {holder.pid} "), leases.hold("table"):
        pass
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    with leases.hold("table") as lease:
        assert not lease.lost


def test_postgresql_takes_the_same_statements(leases: Leases) -> None:
    said: list[str] = []

    def note(connection: object, statement: ClauseElement, *_: object) -> None:
        said.append(str(statement.compile(dialect=postgresql.dialect())).split()[0])

    event.listen(leases.engine, "before_execute", note)
    lease = leases.acquire("a")
    lease.beat()
    lease.release()
    assert [word for word in said if word != "SELECT"] == ["CREATE", "UPDATE", "INSERT", "UPDATE", "DELETE"]
