"""Candidates alternate, and the warm-up round is not counted."""

from benchmarks.timing import time_in_turns


def test_candidates_alternate_and_warm_up_is_not_counted(monkeypatch):
    now, log = [0.0], []
    durations = {"a": iter([100, 1, 2, 9]), "b": iter([50, 4, 4, 4])}
    monkeypatch.setattr("time.perf_counter", lambda: now[0])

    def candidate(name):
        def call():
            log.append(name)
            now[0] += next(durations[name])

        return call

    times = time_in_turns({name: candidate(name) for name in "ab"}, repeats=3)
    assert log == list("abababab")
    assert times["a"] == (2, 1.5, 5.5)  # median and quartiles of 1, 2, 9
    assert times["b"] == (4, 4, 4)
