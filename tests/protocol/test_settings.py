"""PROTOCOL section 14: classes of live settings, their revisions, and when each acts."""

from __future__ import annotations

from typing import Any

import pytest

from tests.protocol.driving import MS, SECOND, begun, book_of, config_of, fixed_of
from workbench.config import ConfigError
from workbench.config.keys import key_types
from workbench.protocol import events as ev
from workbench.protocol import messages as msg
from workbench.protocol.records import Kind
from workbench.protocol.settings import LEARNER_KEYS, MERGE_KEYS, POLICY_KEYS

T = 2
CLASSES: dict[str, dict[str, Any]] = {
    "policy": {
        "quorum": 2, "eligibility": "paced", "grace": "all", "grace_s": 1.0, "grace_gamma": 0.1,
        "grace_cap_steps": 2.0, "pull_limit_min_s": 0.5, "guard_nonfinite": False,
        "guard_norm": 4.0, "guard_cosine": True, "quarantine_after": 2,
    },
    "arithmetic": {
        "merge": "mean", "weights": "uniform", "outer": "sgd", "outer_rate": 0.1, "outer_momentum": 0.2,
        "codec": "bf16",
    },
    "learner": {
        "fold": "blend", "fold_alpha": 0.25, "lead": 3, "inner.rate": 1e-4, "inner.batch": 4, "inner.accumulation": 2,
    },
}  # fmt: skip


def test_every_live_setting_is_of_a_class_and_every_other_is_fixed() -> None:
    live = {*POLICY_KEYS, *MERGE_KEYS, *LEARNER_KEYS}
    assert live == {key for settings in CLASSES.values() for key in settings}
    book, fixed = book_of(config_of()), fixed_of(config_of())
    for key in key_types():
        if key not in live:
            with pytest.raises(ConfigError, match=f"{key} cannot change while a run goes on; live settings: quorum"):
                book.apply({key: 1}, fixed)
    assert book.revision == 0


@pytest.mark.parametrize("name", CLASSES)
def test_each_setting_lands_in_its_class(name: str) -> None:
    book, fixed = book_of(config_of()), fixed_of(config_of())
    part: Any = {"policy": book.policy, "arithmetic": book.merge, "learner": book.learner}[name]
    for revision, (key, value) in enumerate(CLASSES[name].items(), 1):
        book.apply({key: value}, fixed)
        part = {"policy": book.policy, "arithmetic": book.merge, "learner": book.learner}[name]
        field = {"inner.rate": "rate_scale", "inner.batch": "batch", "inner.accumulation": "accumulation"}.get(key, key)
        expected = value / config_of().inner.rate if key == "inner.rate" else value
        assert getattr(part, field) == expected and book.revision == revision
        assert book.in_force()[key] == pytest.approx(value) if key == "inner.rate" else book.in_force()[key] == value
    assert book.in_force().keys() == {*POLICY_KEYS, *MERGE_KEYS, *LEARNER_KEYS}


@pytest.mark.parametrize("values", [
    {"quorum": 0}, {"quorum": 3}, {"quorum": 1.5}, {"quorum": True}, {"grace": "some"}, {"grace_gamma": 1.5},
    {"grace_s": float("nan")}, {"guard_nonfinite": "yes"}, {"lead": -1}, {"lead": 1.5}, {"inner.batch": 2.5},
    {"merge": "geomedian"}, {"nothing": 1}, {"pull_limit_min_s": 3.0}, {"quorum": 1, "merge": "none"},
])  # fmt: skip
def test_what_is_not_possible_is_refused_whole(values: dict[str, Any]) -> None:
    config = config_of()
    book, before = book_of(config), book_of(config)
    with pytest.raises(ConfigError):
        book.apply(values, fixed_of(config))
    assert book == before


def test_a_pull_limit_above_the_heartbeat_limit_names_both() -> None:
    """REPORTED Q6."""
    with pytest.raises(ConfigError, match=r"pull_limit_min_s = 3.0 is above heartbeat_limit_s = 2; allowed: up to 2"):
        book_of(config_of()).apply({"pull_limit_min_s": 3.0}, fixed_of(config_of()))
    with pytest.raises(ConfigError, match=r"pull_limit_min_s = 3.0 is above heartbeat_limit_s = 2.0"):
        config_of(pull_limit_min_s=3.0)


def test_an_inner_rate_of_zero_cannot_be_scaled() -> None:
    config = config_of().set({"inner.rate": 0.0})
    with pytest.raises(ConfigError, match=r"began with inner.rate = 0"):
        book_of(config).apply({"inner.rate": 0.1}, fixed_of(config))


def test_a_lead_of_none_is_a_lead() -> None:
    book = book_of(config_of(lead=2))
    book.apply({"lead": None}, fixed_of(config_of()))
    assert book.learner.lead is None


# at the syncer


def test_who_asked_when_and_as_which_revision_is_recorded() -> None:
    talk = begun()
    talk.give(ev.SettingsAsked({"quorum": 2}, "page"), 5 * MS)
    talk.give(ev.SettingsAsked({"grace": "all"}, "notebook"))
    first, second = talk.of(Kind.SETTING_CHANGED)
    assert (first.setting, first.round, first.detail) == (
        1,
        talk.state.next_t,
        {"values": {"quorum": 2}, "who": "page"},
    )
    assert (second.setting, second.detail["who"]) == (2, "notebook"), "two controllers: the syncer's order counts"
    assert talk.state.book.revision == 2


def test_a_refused_change_is_recorded_with_the_reason_and_changes_nothing() -> None:
    talk = begun()
    talk.give(ev.SettingsAsked({"period": 5}, "page"))
    (refused,) = talk.of(Kind.SETTING_REFUSED)
    assert refused.reason.startswith("period cannot change") and refused.detail["who"] == "page"
    assert talk.state.book.revision == 0 and not talk.to(0, msg.Change)


def test_policy_acts_at_once_on_waiting_rounds_too() -> None:
    talk = begun(learners=3, grace="all")
    talk.step(0, MS, g=2)
    assert talk.state_of(T) == "GRACE"
    talk.give(ev.SettingsAsked({"quorum": 2}, "page"))
    assert talk.state_of(T) == "READY", "the quorum of a round in flight"
    talk.give(ev.SettingsAsked({"quorum": 1}, "page"))
    assert talk.state_of(T) == "GRACE"
    talk.give(ev.SettingsAsked({"grace": "fixed", "grace_s": 0.5}, "page"))
    assert talk.round(T).window_ns == SECOND // 2, "its grace window"
    talk.give(ev.SettingsAsked({"eligibility": "paced"}, "page"))
    assert talk.state_of(T) == "PULLING", "its rule of admission: all are admitted now"
    until = talk.round(T).pull_until
    talk.give(ev.SettingsAsked({"pull_limit_min_s": 1.25}, "page"))
    assert talk.round(T).pull_until == until + SECOND, "its pull limit"
    talk.give(ev.SettingsAsked({"guard_nonfinite": False}, "page"))
    talk.answer(0, T, finite=False)
    assert list(talk.round(T).here) == [0], "its guards"


def test_arithmetic_acts_on_rounds_opened_later() -> None:
    talk = begun()
    talk.give(ev.SettingsAsked({"codec": "bf16", "weights": "uniform"}, "page"))
    talk.step(0, MS, g=2)
    assert [p.codec for p in talk.to(0, msg.Pull)] == ["f32"]
    talk.answer(0, T)
    order = talk.merged()
    talk.committed()
    assert order.weights == [200.0**2 / 2]
    talk.fold(0)
    talk.step(0, MS, g=4)
    assert [p.codec for p in talk.to(0, msg.Pull)] == ["f32", "bf16"], "the PULL names the codec"
    talk.says(0, talk.puppets[0].fragment(4, codec="bf16"))
    assert talk.merged().weights == [1.0]


def test_a_changed_outer_optimiser_starts_with_fresh_state_once_and_recorded() -> None:
    talk = begun(period=2, fragments=2)
    fresh = []
    for t, p, change in (
        (1, 1, None),
        (2, 0, {"outer": "sgd"}),
        (3, 1, None),
        (4, 0, None),
        (5, 1, None),
        (6, 0, None),
    ):
        if change:
            talk.give(ev.SettingsAsked(change, "page"))
        talk.step(0, MS, g=t)
        talk.answer(0, t, p)
        fresh.append((p, talk.merged().fresh_outer))
        talk.committed()
        talk.fold(0, p)
    assert fresh == [(1, False), (0, False), (1, True), (0, True), (1, False), (0, False)]
    assert [r.detail["fresh_outer"] for r in talk.of(Kind.MERGED)] == [f for _, f in fresh]


def test_learners_hear_of_their_settings() -> None:
    talk = begun()
    talk.give(ev.SettingsAsked({"fold": "blend", "inner.rate": 1.5e-3}, "page"))
    for m in (0, 1):
        (change,) = talk.to(m, msg.Change)
        assert (change.revision, change.settings["fold"], change.settings["rate_scale"]) == (1, "blend", 0.5)
        assert change.origin == talk.of(Kind.SETTING_CHANGED)[0].seq


def test_a_change_that_was_lost_is_sent_again_with_the_metadata_that_lacks_it() -> None:
    talk = begun()
    talk.give(ev.SettingsAsked({"fold": "blend"}, "page"))
    talk.step(0)
    assert [c.revision for c in talk.to(0, msg.Change)] == [1, 1]
    talk.puppets[0].revision = 1
    talk.step(0)
    assert len(talk.to(0, msg.Change)) == 2


def test_who_joins_later_is_welcomed_with_the_settings_of_now() -> None:
    talk = begun()
    talk.give(ev.SettingsAsked({"fold_alpha": 0.75}, "page"))
    talk.join(0)
    welcome = talk.to(0, msg.Welcome)[-1]
    assert (welcome.revision, welcome.settings["fold_alpha"]) == (1, 0.75)


def test_a_quarantine_of_a_learner_that_never_joined_is_refused() -> None:
    talk = begun()
    talk.give(ev.QuarantineAsked(7, True, "page"))
    assert [r.reason for r in talk.of(Kind.SETTING_REFUSED)] == ["L7 has not joined; nothing to quarantine"]
