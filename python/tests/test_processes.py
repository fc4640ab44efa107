"""Threads, forks and processes: right values, and no hang. Each test runs in a process of its own with a time limit."""

import subprocess
import sys
import textwrap

import pytest

START = """
import multiprocessing, os, random, sys, threading
import numpy as np
import nbody_fmm

def data(seed, n=300):
    rng = np.random.default_rng(seed)
    return rng.random((n, 3)), rng.normal(size=n)

def bits(seed, n=300, **options):
    return nbody_fmm.evaluate(*data(seed, n), **options).field.tobytes()
"""


def run(script, *arguments, seconds=60, folder):
    file = folder / "script.py"
    file.write_text(START + textwrap.dedent(script))
    command = [sys.executable, "-W", "error::RuntimeWarning", file, *map(str, arguments)]
    done = subprocess.run(command, timeout=seconds, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_fork_after_a_sum(tmp_path):
    run(
        """
        expected = [bits(1), bits(2, 2000, threads=2)]
        for _ in range(4):
            child = os.fork()
            if child == 0:
                os._exit(0 if [bits(1), bits(2, 2000, threads=2)] == expected else 3)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
            assert [bits(1), bits(2, 2000, threads=2)] == expected
        """,
        folder=tmp_path,
    )


def test_forked_child_keeps_a_solver(tmp_path):
    run(
        """
        solver = nbody_fmm.Solver(method="fmm", threads=2)
        x, q = data(1, 2000)
        expected = solver(x, q).field.tobytes()
        child = os.fork()
        if child == 0:
            os._exit(0 if solver(x, q).field.tobytes() == expected else 3)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        """,
        folder=tmp_path,
    )


def test_fork_while_threads_sum(tmp_path):
    run(
        """
        import warnings
        warnings.simplefilter("ignore", DeprecationWarning)
        solver = nbody_fmm.Solver(method="fmm", threads=2, box=1)
        x, q = data(1, 2000)
        expected = solver(x, q).field.tobytes()
        wrong, stop = [], threading.Event()
        def sums():
            while not stop.is_set():
                if solver(x, q).field.tobytes() != expected:
                    wrong.append("a thread")
        threads = [threading.Thread(target=sums) for _ in range(2)]
        for thread in threads:
            thread.start()
        for _ in range(10):
            child = os.fork()
            if child == 0:
                os._exit(0 if solver(x, q).field.tobytes() == expected else 3)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        stop.set()
        for thread in threads:
            thread.join()
        assert not wrong
        """,
        folder=tmp_path,
    )


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing(method, tmp_path):
    run(
        """
        if __name__ == "__main__":
            expected = [bits(seed) for seed in range(8)]
            with multiprocessing.get_context(sys.argv[1]).Pool(2) as pool:
                assert pool.map(bits, range(8)) == expected
                solver = nbody_fmm.Solver(tolerance=1e-6)
                results = pool.starmap(solver, [data(seed) for seed in range(4)])
            assert [r.field.tobytes() for r in results] == [bits(seed, tolerance=1e-6) for seed in range(4)]
        """,
        method,
        folder=tmp_path,
    )


def test_random_calls_of_eight_threads_and_four_forks(pytestconfig, tmp_path):
    calls = pytestconfig.getoption("calls")
    run(
        """
        import warnings
        warnings.simplefilter("ignore", DeprecationWarning)
        count, failures = int(sys.argv[1]), []
        cases = [(seed, n, options)
                 for seed in range(3) for n in (1, 10, 300, 1500)
                 for options in ({}, {"threads": 2}, {"threads": 3, "method": "fmm"}, {"box": 1, "method": "fmm"},
                                 {"hessian": True})]
        expected = [bits(seed, n, **options) for seed, n, options in cases]
        shared = nbody_fmm.Solver(method="fmm")
        x, q = data(9, 1500)
        of_shared = shared(x, q).field.tobytes()
        def calls(k):
            choose = random.Random(k)
            for _ in range(count // 12):
                if choose.random() < 0.1:
                    right = shared(x, q).field.tobytes() == of_shared
                elif choose.random() < 0.1:
                    try:
                        nbody_fmm.evaluate(x * np.nan, q)
                        right = False
                    except ValueError:
                        right = True
                else:
                    case = choose.randrange(len(cases))
                    seed, n, options = cases[case]
                    right = bits(seed, n, **options) == expected[case]
                if not right:
                    failures.append(k)
        threads = [threading.Thread(target=calls, args=(k,)) for k in range(8)]
        for thread in threads:
            thread.start()
        children = []
        for k in range(8, 12):
            children.append(os.fork())
            if children[-1] == 0:
                failures.clear()
                calls(k)
                os._exit(3 if failures else 0)
        for thread in threads:
            thread.join()
        assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0] * 4
        assert not failures, failures
        """,
        calls,
        seconds=60 + calls / 5,
        folder=tmp_path,
    )


def test_subinterpreters_are_refused(tmp_path):
    # NumPy has none either.
    subinterpreters = pytest.importorskip("_xxsubinterpreters", reason="skipped: this Python has none")
    assert subinterpreters
    run(
        """
        import _xxsubinterpreters as interpreters
        expected = bits(1)
        script = "try:\\n import nbody_fmm\\nexcept ImportError: pass\\nelse: raise SystemExit('imported')"
        for _ in range(3):
            interpreters.run_string(interpreters.create(), script)
            assert bits(1) == expected
        """,
        folder=tmp_path,
    )


def test_many_short_threads(tmp_path):
    run(
        """
        expected = bits(1)
        found = []
        for _ in range(200):
            thread = threading.Thread(target=lambda: found.append(bits(1)))
            thread.start()
            thread.join()
        assert found == [expected] * 200
        """,
        folder=tmp_path,
    )


def test_other_threads_run_during_a_sum(tmp_path):
    run(
        """
        import time
        x, q = data(1, 20_000)
        count, stop = [0], threading.Event()
        def tick():
            while not stop.wait(0.005):
                count[0] += 1
        thread = threading.Thread(target=tick)
        thread.start()
        begun = count[0]
        start = time.perf_counter()
        nbody_fmm.evaluate(x, q, method="direct", precision="f64")
        took, ticks = time.perf_counter() - start, count[0] - begun
        stop.set()
        thread.join()
        # With the GIL held there is at most one tick.
        assert ticks >= min(3, took / 0.05), (ticks, took)
        """,
        folder=tmp_path,
    )


@pytest.mark.parametrize("method", ["direct", "fmm"])
def test_ctrl_c_ends_a_sum(method, tmp_path):
    run(
        """
        import signal, time
        # A shell has its background jobs ignore it.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        x, q = data(1, 2_000_000)
        expected = bits(1)
        def interrupt():
            time.sleep(1.5)
            os.kill(os.getpid(), signal.SIGINT)
        threading.Thread(target=interrupt).start()
        solver = nbody_fmm.Solver(method=sys.argv[1], tolerance=1e-10, precision="f64", device="cpu")
        try:
            # Directly an hour.
            solver(x, q)
        except KeyboardInterrupt:
            pass
        else:
            raise AssertionError("the sum went on")
        assert bits(1) == expected
        assert solver(*data(1)).field.shape == (300, 3)
        """,
        method,
        folder=tmp_path,
    )


def test_other_signals_do_not_end_a_sum(tmp_path):
    run(
        """
        import signal
        # 3.6e9 pairs: many times the 50 ms between two calls of handlers, on fast machines too.
        expected = bits(1, 60_000, method="direct")
        count = []
        signal.signal(signal.SIGALRM, lambda *_: count.append(1))
        signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
        assert bits(1, 60_000, method="direct") == expected
        signal.setitimer(signal.ITIMER_REAL, 0)
        assert count
        """,
        folder=tmp_path,
    )
