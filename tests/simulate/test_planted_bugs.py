"""Each of these one-line bugs was thought of beforehand; the explorer finds it within the default seeds."""

from __future__ import annotations

from itertools import chain
from types import ModuleType

import pytest

from tests.simulate.planting import planted
from workbench.protocol import (
    admission,
    arrivals,
    beginnings,
    copies,
    folding,
    guards,
    learner,
    merging,
    pacer,
    restart,
    rounds,
    syncer,
    updates,
)
from workbench.simulate import explorer

SEEDS = 2000
"""Those of the default tests."""

FOUND_AT = {"unhealed joiner counted in K": 512, "fragment of an old incarnation taken": 294}
"""Seeds that found a bug late, tried first; all others are tried where one of these does not find it any more."""

BUGS: dict[str, tuple[ModuleType, str, str]] = {
    "base version not compared": (
        admission,
        "        return base == state.versions[p]\n",
        "        return base >= 0\n",
    ),
    "counters not reset on fold": (
        folding,
        "    state.c_steps[p], state.c_tokens[p] = counters_after(rule, state.c_steps[p], state.c_tokens[p], since)\n",
        "    pass\n",
    ),
    "UPDATE before commit": (
        merging,
        "    core.out.append(Commit(round_.t, round_.p, version))\n",
        "    core.state.versions[round_.p] = version; updates.broadcast(core, round_.p, core.now); "
        "core.out.append(Commit(round_.t, round_.p, version))\n",
    ),
    "fragment of an old incarnation taken": (
        arrivals,
        "        and member.incarnation == message.incarnation\n",
        "\n",
    ),
    "no re-send": (
        updates,
        "            enqueue(core, member, p)\n\n\ndef _on_its_way",
        "            pass\n\n\ndef _on_its_way",
    ),
    "unhealed joiner counted in K": (admission, "        and member.healed\n", "\n"),
    "late fragment taken": (
        arrivals,
        "    if round_.state >= RoundState.MERGING:\n",
        "    if False:\n",
    ),
    "weights divided by M instead of the contributors": (
        merging,
        "    weights = [weigh(c.steps, c.tokens, version - c.base_version) for c in used]\n",
        "    weights = [weigh(c.steps, c.tokens, version - c.base_version) / state.fixed.learners for c in used]\n",
    ),
    "restart repeats a recorded n": (
        restart,
        "        member.last_step = max(member.last_step, record.step)\n",
        "        pass\n",
    ),
    "setting read at merge instead of at OPEN": (
        merging,
        '        "outer_rate": round_.settings.outer_rate,\n'
        '        "outer_momentum": round_.settings.outer_momentum,\n'
        '        "anchor"',
        '        "outer_rate": state.book.merge.outer_rate,\n'
        '        "outer_momentum": round_.settings.outer_momentum,\n'
        '        "anchor"',
    ),
    "two rounds of one fragment": (
        pacer,
        "        if any(r.p == p for r in state.rounds.values()):\n",
        "        if False:\n",
    ),
    "a rejoined learner twice in one merge": (
        rounds,
        "        if member.learner in round_.here or not admission.is_clean(state, member, p, now):\n",
        "        if not admission.is_clean(state, member, p, now):\n",
    ),
    "a waiting learner that sends no METADATA": (
        learner,
        "        core.send_metadata()\n    else:\n        core.send_heartbeat()\n",
        "        core.send_heartbeat()\n    else:\n        core.send_heartbeat()\n",
    ),
    "backlog skipped by other than whole periods": (
        pacer,
        "    state.next_t = first + periods * period\n",
        "    state.next_t = ahead\n",
    ),
    "rounds opened ahead lost at the syncer's restart": (
        restart,
        "        _reopen(state, record)\n",
        "        state.opened_t, state.next_t = record.round, record.round + 1\n",
    ),
    "UPDATE behind a MARKER folded before the snapshot": (
        folding,
        "    behind = state.cut is not None and is_behind(state, BULK)\n",
        "    behind = False\n",
    ),
    "peer answers before the stamp": (
        copies,
        "        if state.healed and _has(state, request.stamp):\n",
        "        if state.healed:\n",
    ),
    "peer's parameters over what the syncer has sent": (
        beginnings,
        "    fragments = [p for p, base in enumerate(state.base) if base < 0]\n",
        "    fragments = list(range(len(state.base)))\n",
    ),
    "state sent before its records are acknowledged": (
        copies,
        "        if copy.handle == UNSET or state.outbox.acked < copy.seq:\n",
        "        if copy.handle == UNSET:\n",
    ),
    "rounds in flight kept when the run goes back to a snapshot": (
        restart,
        "    state.epoch, state.rounds, state.finished = epoch, {}, False\n",
        "    state.epoch, state.finished = epoch, False\n",
    ),
    "own steps not rolled back with a snapshot": (
        restart,
        "        member.last_step = steps.get(learner, 0)\n",
        "        pass\n",
    ),
    "a refused contribution merged all the same": (
        guards,
        "    contribution = round_.here.pop(learner)\n",
        "    contribution = round_.here[learner]\n",
    ),
    "a refused contribution's learner pulled again before it is healed": (
        guards,
        "            round_.guarded.append(member.learner)\n        updates.enqueue(core, member, p)\n",
        "            pass\n        member.anew[p] = 0\n",
    ),
    "heartbeat gap of the syncer's own stop not added": (
        syncer,
        "            shift(state, gap, now - state.fixed.heartbeat_limit_ns + LATE_WAKE_NS)\n",
        "            pass\n",
    ),
}
"""Name to module, line, and what stands in its place."""


def first_seed_that_fails(name: str) -> tuple[int, str]:
    """The first default seed whose schedule breaks a rule or a machine; -1 if none does."""
    for seed in chain([FOUND_AT.get(name, 0)], range(SEEDS)):
        outcome = explorer.run_seed(seed)
        if outcome.failure:
            return seed, outcome.failure
    return -1, ""


@pytest.mark.parametrize("name", BUGS)
def test_planted_bug_is_found(name: str) -> None:
    module, line, instead = BUGS[name]
    with planted(module, line, instead):
        seed, failure = first_seed_that_fails(name)
    assert seed >= 0, f"{name}: not found in {SEEDS} seeds"
    print(f"{name}: seed {seed}: {failure[:100]}")
    assert explorer.run_seed(seed).failure == "", "the seed fails without the bug too"
