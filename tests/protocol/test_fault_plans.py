from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.simulate.worlds import SECOND, config_of
from workbench.config import ConfigError
from workbench.protocol.chaos import CHAOS_KINDS, parse_chaos
from workbench.protocol.faults import FAULT_KINDS, SYNCER_KINDS, Fault, FaultPlan
from workbench.protocol.scenario import load_faults

CONFIG = config_of(learners=4, seed=3)


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    return tmp_path / "storm.toml"


def one(**keys: Any) -> str:
    return "[[fault]]\n" + "".join(
        f"{k} = {v}\n" for k, v in {"kind": '"kill"', "at_s": 1, "learner": 0, **keys}.items() if v is not None
    )


def test_a_scenario_is_read_in_order_of_time(scenario: Path) -> None:
    scenario.write_text(
        '[[fault]]\nkind = "stall"\nat_s = 2.5\nlearner = 3\nfor_s = 0.5\n'
        '[[fault]]\nkind = "kill"\nat_s = 1\nlearner = 0\ndown_s = 4\n'
        '[[fault]]\nkind = "kill_syncer"\nat_s = 3\n'
        '[[fault]]\nkind = "slow"\nat_s = 4\nlearner = 1\nfactor = 2\nfor_s = 9\n'
        '[[fault]]\nkind = "nan"\nat_s = 5\nlearner = 2\ncount = 2\n'
    )
    plan = load_faults(scenario, CONFIG)
    assert plan.faults == (
        Fault("kill", 1 * SECOND, 0, 4 * SECOND),
        Fault("stall", int(2.5 * SECOND), 3, SECOND // 2),
        Fault("kill_syncer", 3 * SECOND, -1, 3 * SECOND),
        Fault("slow", 4 * SECOND, 1, 9 * SECOND, 2.0),
        Fault("nan", 5 * SECOND, 2, count=2),
    )
    assert plan.scenario == scenario.read_text() and not plan.chaos


@pytest.mark.parametrize("kind", FAULT_KINDS)
def test_every_kind_can_be_scripted(scenario: Path, kind: str) -> None:
    when = {"at_s": None} if kind == "late" else {}
    scenario.write_text(one(kind=f'"{kind}"', **when))
    (fault,) = load_faults(scenario, CONFIG).faults
    assert fault.kind == kind and fault.learner == (-1 if kind in (*SYNCER_KINDS, "add") else 0)


def test_what_a_kind_has_of_its_own_and_when_it_strikes(scenario: Path) -> None:
    scenario.write_text(
        '[[fault]]\nkind = "delay"\nat_s = 1\nlearner = 0\ndelay_s = 0.25\njitter_s = 0.1\nseed = 7\n'
        '[[fault]]\nkind = "loss"\nat_round = 40\nlearner = 0\nshare = 0.5\nevery_s = 10\n'
        '[[fault]]\nkind = "bandwidth"\nat_merge = 9\nlearner = 0\nbytes_per_s = 5e4\nevery_s = 2\ntimes = 4\n'
        '[[fault]]\nkind = "late"\nlearner = 2\nstart_s = 1.5\n'
        '[[fault]]\nkind = "flip"\nat_s = 2\nlearner = 1\npersistent = true\n'
    )
    loss, narrow, late, delay, flip = load_faults(scenario, CONFIG).faults
    assert delay == Fault("delay", SECOND, 0, 3 * SECOND, delay_ns=SECOND // 4, jitter_ns=SECOND // 10, seed=7)
    assert loss == Fault("loss", 0, 0, 3 * SECOND, share=0.5, at_round=40, every_ns=10 * SECOND, times=0)
    assert narrow == Fault("bandwidth", 0, 0, 3 * SECOND, bytes_per_s=5e4, at_merge=9, every_ns=2 * SECOND, times=4)
    assert late == Fault("late", 0, 2, int(1.5 * SECOND))
    assert flip == Fault("flip", 2 * SECOND, 1, persistent=True)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "holds no [[fault]] table"),
        ("fault = 3\n", "holds no [[fault]] table"),
        ("[[faults]]\nkind = 'kill'\n", "holds no [[fault]] table"),
        ("[[fault]\n", "is not TOML"),
        ("fault = [3]\n", "fault 1: 3 is not a table of keys"),
        (one(kind='"explode"'), "fault 1: kind = 'explode' is unknown; allowed: kill, stall"),
        ("[[fault]]\nat_s = 1\n", "fault 1: kind = None is unknown"),
        ("[[fault]]\nkind = [1]\nat_s = 1\n", "fault 1: kind = [1] is unknown"),
        (one(when_s=3), "fault 1: unknown key 'when_s' of a kill; allowed: at_merge, at_round, at_s, down_s"),
        ('[[fault]]\nkind = "kill"\nlearner = 0\n', "fault 1: at_s (seconds from the start) is missing"),
        (one() + one(at_s=-1), "fault 2: at_s = -1; allowed: a number from 0"),
        (one(at_s='"soon"'), "fault 1: at_s = 'soon'; allowed: a number from 0"),
        (one(at_s="true"), "fault 1: at_s = True"),
        (one(at_s="nan"), "fault 1: at_s = nan"),
        (one(at_s="inf"), "fault 1: at_s = inf"),
        ('[[fault]]\nkind = "kill"\nat_s = 1\n', "fault 1: learner = -1; allowed: 0 to 3"),
        (one(learner=4), "fault 1: learner = 4; allowed: 0 to 3"),
        (one(learner="true"), "fault 1: learner = True; allowed: 0 to 3"),
        (one(learner=1.0), "fault 1: learner = 1.0; allowed: 0 to 3"),
        (one(for_s=-3), "fault 1: for_s = -3; allowed: a number from 0"),
        (one(down_s='"long"'), "fault 1: down_s = 'long'"),
        (one(for_s=1, down_s=2), "fault 1: for_s and down_s name the same length; give one of them"),
        (one(factor=2), "fault 1: unknown key 'factor' of a kill"),
        (one(kind='"slow"', factor=0.5), "fault 1: factor = 0.5; allowed: a number from 1 to 1e+09"),
        (one(kind='"nan"', count=0), "fault 1: count = 0; allowed: a whole number from 1"),
        (one(kind='"nan"', count=1.5), "fault 1: count = 1.5; allowed: a whole number from 1"),
        (one(kind='"nan"', for_s=1), "fault 1: unknown key 'for_s' of a nan"),
        (one(kind='"nan"', persistent=1), "fault 1: persistent = 1; allowed: true or false"),
        (one(kind='"scale"', factor='"big"'), "fault 1: factor = 'big'; allowed: a number from -1e+09"),
        (one(kind='"delay"', factor=2), "fault 1: unknown key 'factor' of a delay; allowed: at_merge"),
        (one(kind='"delay"', delay_s=-1), "fault 1: delay_s = -1; allowed: a number from 0"),
        (one(kind='"delay"', jitter_s="inf"), "fault 1: jitter_s = inf; allowed: a number from 0"),
        (one(kind='"loss"', share=1.5), "fault 1: share = 1.5; allowed: a number from 0 to 1"),
        (one(kind='"loss"', seed=-1), "fault 1: seed = -1; allowed: a whole number from 0"),
        (one(kind='"bandwidth"', bytes_per_s=0), "fault 1: bytes_per_s = 0; allowed: a number from 1"),
        (one(kind='"late"'), "fault 1: unknown key 'at_s' of a late; allowed: kind, learner, start_s"),
        (one(kind='"late"', at_s=None, start_s=-1), "fault 1: start_s = -1; allowed: a number from 0"),
        (one(at_round=3), "fault 1: at_s and at_round both say when it strikes; give one of them"),
        (one(at_s=None, at_merge=-3), "fault 1: at_merge = -3; allowed: a whole number from 0"),
        (one(times=3), "fault 1: times = 3 without every_s; give the seconds between two of them"),
        (one(every_s=0), "fault 1: every_s = 0; allowed: a number from 0.001"),
        (one(every_s=1, times=0), "fault 1: times = 0; allowed: a whole number from 1"),
    ],
)
def test_a_scenario_that_cannot_work_is_refused(scenario: Path, text: str, complaint: str) -> None:
    scenario.write_text(text)
    with pytest.raises(ConfigError) as raised:
        load_faults(scenario, CONFIG)
    assert complaint in str(raised.value) and str(scenario) in str(raised.value)


def test_a_scenario_that_cannot_be_read_is_refused(scenario: Path, tmp_path: Path) -> None:
    for path in (scenario, tmp_path):
        with pytest.raises(ConfigError, match="cannot be read"):
            load_faults(path, CONFIG)
    scenario.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="cannot be read"):
        load_faults(scenario, CONFIG)


def test_plans_add_up_in_order_of_time(scenario: Path) -> None:
    scenario.write_text(one(at_s=6))
    both = load_faults(scenario, CONFIG) + parse_chaos("mtbi=5", CONFIG, 20.0)
    assert [f.at_ns for f in both.faults] == sorted(f.at_ns for f in both.faults)
    assert Fault("kill", 6 * SECOND, 0, 3 * SECOND) in both.faults
    assert both.scenario and both.chaos == "mtbi=5" and len(both.notes) == 1
    assert FaultPlan() + FaultPlan() == FaultPlan()


def gaps_s(plan: FaultPlan, learner: int) -> np.ndarray:
    """Times from one fault of a learner to the next, the first from 0 [s]."""
    at = np.array([f.at_ns for f in plan.faults if f.learner == learner]) / SECOND
    return np.diff(at, prepend=0.0)


def kolmogorov_smirnov(gaps: np.ndarray, mean: float) -> float:
    """Largest distance of the distribution of gaps from the exponential, in units of its 5 % limit 1.358 / sqrt n."""
    expected = 1.0 - np.exp(-np.sort(gaps) / mean)
    n = len(gaps)
    steps = np.arange(n + 1) / n
    distance = max((steps[1:] - expected).max(), (expected - steps[:-1]).max())
    return float(distance * math.sqrt(n) / 1.358)


def test_gaps_are_drawn_from_an_exponential_distribution() -> None:
    plan = parse_chaos("mtbi=5s", config_of(learners=1, seed=3), 5.0 * 260)
    gaps = gaps_s(plan, 0)[:200]
    assert len(gaps) == 200
    assert kolmogorov_smirnov(gaps, 5.0) < 1.0
    assert gaps.mean() == pytest.approx(5.0, rel=0.2) and gaps.std() == pytest.approx(5.0, rel=0.25)


def test_the_test_of_the_gaps_finds_what_it_is_for() -> None:
    assert kolmogorov_smirnov(np.full(200, 5.0), 5.0) > 3.0  # the mean is slept instead of the gap
    drawn = gaps_s(parse_chaos("mtbi=5s", config_of(learners=1, seed=3), 5.0 * 260), 0)[:200]
    assert kolmogorov_smirnov(drawn, 8.0) > 1.0  # another mean
    assert kolmogorov_smirnov(np.random.default_rng(0).uniform(0, 10, 200), 5.0) > 1.0


def test_every_learner_is_interrupted_on_its_own_clock() -> None:
    plan = parse_chaos("mtbi=5s", CONFIG, 5.0 * 300)
    counts = [sum(f.learner == m for f in plan.faults) for m in range(4)]
    assert all(240 < count < 360 for count in counts), counts
    pooled = np.concatenate([gaps_s(plan, m) for m in range(4)])
    assert kolmogorov_smirnov(pooled, 5.0) < 1.0
    fleet = np.diff([f.at_ns for f in plan.faults]) / SECOND
    assert kolmogorov_smirnov(fleet, 5.0 / 4) < 1.0  # MTBF of the fleet = MTBI / M
    drawn = f"{len(plan.faults)} faults drawn for 1500 s"
    assert plan.notes == (f"chaos: MTBI 5 s per learner, fleet MTBF 1.25 s, {drawn}",)


def test_a_storm_depends_on_its_seed_alone() -> None:
    def drawn(spec: str, seed: int) -> tuple[Fault, ...]:
        return parse_chaos(spec, CONFIG.set(seed=seed), 100.0).faults

    assert drawn("mtbi=5", 1) == drawn("mtbi=5", 1) != drawn("mtbi=5", 2)
    assert drawn("mtbi=5,seed=9", 1) == drawn("mtbi=5,seed=9", 2) == drawn("mtbi=5", 9)
    longer = parse_chaos("mtbi=5", CONFIG, 200.0).faults
    assert longer[: len(parse_chaos("mtbi=5", CONFIG, 100.0).faults)] == parse_chaos("mtbi=5", CONFIG, 100.0).faults


def test_kinds_and_their_lengths() -> None:
    plan = parse_chaos("mtbi=2s, kinds=kill,stall,slow, down=4s, stall=1s, cut=2, factor=5", CONFIG, 500.0)
    assert {(f.kind, f.for_ns // SECOND, f.factor) for f in plan.faults} == {
        ("kill", 4, 1.0), ("stall", 1, 1.0), ("slow", 2, 5.0)
    }  # fmt: skip
    shares = [np.mean([f.kind == kind for f in plan.faults]) for kind in ("kill", "stall", "slow")]
    assert shares == pytest.approx([1 / 3] * 3, abs=0.05)
    assert {f.kind for f in parse_chaos("mtbi=2", CONFIG, 500.0).faults} == {"kill", "stall", "cut"}


def test_a_storm_over_a_run_of_unknown_length_goes_on_for_hours() -> None:
    plan = parse_chaos("mtbi=40s", CONFIG, None)
    assert 1_900 < len(plan.faults) < 2_100
    assert plan.faults[-1].at_ns > 5 * 3600 * SECOND
    assert plan.faults[:20] == parse_chaos("mtbi=40s", CONFIG, 3600.0).faults[:20]
    assert all(f.at_ns < 86_400 * SECOND for f in parse_chaos("mtbi=5000s", CONFIG, None).faults)


@pytest.mark.parametrize("kind", CHAOS_KINDS)
def test_every_kind_but_those_of_the_syncer_can_be_drawn(kind: str) -> None:
    plan = parse_chaos(f"mtbi=5,kinds={kind},seed=3", CONFIG, 100.0)
    assert {f.kind for f in plan.faults} == {kind}


def test_a_calm_run_has_no_fault() -> None:
    assert parse_chaos("mtbi=1e9", CONFIG, 1.0).faults == ()


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ("kill", "unknown key 'kill'; allowed: kinds, mtbi"),
        ("mtbf=3", "unknown key 'mtbf'; allowed: kinds, mtbi"),
        ("mtbi=often", "mtbi = 'often' is not a number (of seconds, as in mtbi=40s)"),
        ("mtbi=", "mtbi = '' is not a number"),
        ("mtbi=5,kinds=explode", "kind 'explode' is unknown; allowed: kill, stall"),
        ("mtbi=5,kinds=kill,explode", "kind 'explode' is unknown"),
        ("kinds=kill_syncer", "kind 'kill_syncer' is unknown"),
        ("mtbi=0", "mtbi = 0; allowed: above 0"),
        ("mtbi=-5", "mtbi = -5; allowed: above 0"),
        ("mtbi=nan", "mtbi = nan; allowed: above 0"),
        ("mtbi=inf", "mtbi = inf; allowed: above 0"),
        ("down=-1", "down = -1 s; allowed: 0 to 1e9"),
        ("stall=nan", "stall = nan s; allowed: 0 to 1e9"),
        ("cut=inf", "cut = inf s; allowed: 0 to 1e9"),
        ("factor=0", "factor = 0; allowed: above 0"),
        ("seed=1.5", "seed = 1.5; allowed: a whole number"),
        ("seed=nan", "seed = nan; allowed: a whole number"),
        ("mtbi=1e-6", "gives about 400000000 faults; allowed: up to 100000 (try mtbi=0.004s or more)"),
    ],
)
def test_a_storm_that_cannot_work_is_refused(spec: str, complaint: str) -> None:
    with pytest.raises(ConfigError) as raised:
        parse_chaos(spec, CONFIG, 100.0)
    assert str(raised.value).startswith("chaos: ") and complaint in str(raised.value)


@pytest.mark.parametrize(
    ("spec", "part"),
    [
        ("", "nothing is asked for"),
        (" , ", "nothing is asked for"),
        ("mtbi", "has no value"),
        ("mtbi=1s,mtbi=2s", "twice"),
    ],
)
def test_a_storm_that_says_nothing_or_something_twice_is_refused(spec: str, part: str) -> None:
    with pytest.raises(ConfigError, match=part):
        parse_chaos(spec, CONFIG, 10.0)


def test_a_pipe_or_a_device_is_no_scenario(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(ConfigError, match="no regular file"):
            load_faults(path, CONFIG)
