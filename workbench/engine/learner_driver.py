"""A learner's machine on real time: one thread trains, one serves the network, a lock is around the machine.

Whoever brings the machine an input does what it returns, in order, before the lock is given back; only a new state and
an inner step are left to the training thread.  So host copies and folds are where the machine believes them to be
whenever a PULL is answered, and the training thread waits for no socket.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from workbench.engine import child
from workbench.engine.blocks import Descriptor
from workbench.engine.link_faults import LinkFilter
from workbench.engine.slowing import stretch
from workbench.engine.state_copier import Laid, StateCopier
from workbench.engine.state_giver import StateGiver
from workbench.engine.timers import wait_ms
from workbench.protocol import actions as act
from workbench.protocol import events as ev
from workbench.protocol.acting import TO_LEARNER
from workbench.protocol.learner import LearnerMachine
from workbench.protocol.messages import Fragment, PeerState, StateCopy, Update
from workbench.protocol.poisoning import Poisons
from workbench.training.learner_arithmetic import LearnerArithmetic
from workbench.training.learner_values import Incoming

OWN_HANDLES = 1 << 48
"""Handles of outgoing copies begin here, those of what came in lie below."""
POLL_MAX_MS = 250


class Outgoing:
    """What the network thread has still to do for the training thread."""

    def __init__(self) -> None:
        self.messages: deque[tuple[int, int, Any, np.ndarray | Descriptor | None]] = deque()
        self.released: deque[int] = deque()
        self.connect = False
        self.untold = False
        """The training thread has left something here and not yet woken the network thread."""


class LearnerDriver:
    """Tells the machine what happened and does what it returns, in order.

    Parameters
    ----------
    machine : LearnerMachine
    wire : LearnerWire
        Belongs to the thread that calls `turn`.
    arithmetic : LearnerArithmetic
        With the run's first weights, its step compiled.
    origin_ns : int
        Monotonic time at which the run began.
    snapshots : Path, optional
        Where the run's snapshots lie, if this process can read them.
    step_cores : sequence of int, optional
        Cores that the training thread stays on, empty for those of the thread that calls `begin`.

    Attributes
    ----------
    links : LinkFilter
        What faults of the link do to what comes in.
    poisons : Poisons
        Numeric faults that wait for this process.
    left : str
        Why the machine has left, empty before.
    """

    def __init__(
        self,
        machine: LearnerMachine,
        wire: Any,
        arithmetic: LearnerArithmetic,
        origin_ns: int,
        snapshots: Path | None = None,
        step_cores: Sequence[int] = (),
    ) -> None:
        self.machine, self.wire, self.arithmetic, self.origin_ns = machine, wire, arithmetic, origin_ns
        self.left = ""
        self._step_cores = step_cores
        self.links = LinkFilter(TO_LEARNER, wire, machine.state.learner)
        self.poisons = Poisons()
        self._lock = threading.Lock()
        self._jobs: queue.SimpleQueue[act.Adopt | act.StartStep | None] = queue.SimpleQueue()
        self._out = Outgoing()
        self._updates: dict[int, Incoming] = {}
        self._copies: dict[int, np.ndarray | Descriptor] = {}
        self._peers: dict[int, np.ndarray] = {}
        self._copier = StateCopier(arithmetic.fragmentation, wire.stage, self._laid, self._failed)
        self._giver = StateGiver(arithmetic, machine.state, snapshots)
        self._next_copy = OWN_HANDLES
        self._error: BaseException | None = None
        self._trainer = threading.Thread(target=self._train, name="train", daemon=True)

    def now(self) -> int:
        """Time since the run began [ns]."""
        return time.monotonic_ns() - self.origin_ns

    def begin(self) -> None:
        """Start training thread and machine."""
        self._trainer.start()
        with self._lock:
            self._do_all(self.machine.start(self.now()))
        self._flush()

    # the network's side

    def turn(self) -> None:
        """Wait until something comes or is due; send what waits."""
        came = self.wire.poll(wait_ms(self.now(), POLL_MAX_MS, self.machine.wake_at, self.links.next_at))
        for connection in self.wire.opened():
            self.give(ev.Connected(connection))
        for connection, message in self.links.passing(self.now(), came):
            if isinstance(message, Update):
                theta = self.wire.payload(message.handle).view(np.float32)
                self._updates[message.handle] = self.arithmetic.incoming(message.fragment, theta)
            elif isinstance(message, PeerState) and message.handle >= 0:
                self._peers[message.handle] = self.wire.payload(message.handle)
            self.give(ev.Received(connection, message))
        for connection in self.wire.closed():
            self.give(ev.Disconnected(connection))
        if 0 <= self.machine.wake_at <= self.now():
            self.give(ev.Woken())
        self._flush()
        if self._error is not None:
            raise self._error

    def _flush(self) -> None:
        if self._out.connect:
            self._out.connect = False
            if not self.links.is_cut():  # over a link that is cut nothing is reached: the machine asks again
                self.wire.connect()
        while self._out.messages:
            self.wire.send(*self._out.messages.popleft())
        while self._out.released:
            self.wire.release(self._out.released.popleft())

    # both sides

    def give(self, event: Any) -> None:
        """Let the machine take an input, and those that follow from it at once."""
        with self._lock:
            self._do_all(self.machine.handle(self.now(), event))

    def _do_all(self, todo: list[act.Action]) -> None:
        events: deque[Any] = deque()
        actions = deque(todo)
        while actions or events:
            if actions:
                self._do(actions.popleft(), events)
            else:
                actions.extend(self.machine.handle(self.now(), events.popleft()))

    def _do(self, action: Any, events: deque[Any]) -> None:
        kind = type(action)
        if kind is act.Send:
            self._send(action)
        elif kind is act.StartStep or kind is act.Adopt:
            self._jobs.put(action)
        elif kind is act.Publish:
            if action.fragment < 0:  # a fold renews the host copy of its fragment itself
                self.arithmetic.publish()
        elif kind is act.Capture:
            events.extend(self._capture(action))
        elif kind is act.Fold:
            self._fold(action)
        elif kind is act.CopyState:
            self._copier.put(action.number, self.arithmetic.hold(action.captured if action.snapshot else None))
        elif kind is act.ForgetCapture:
            self.arithmetic.forget(action.fragment, action.step)
        elif kind is act.Release:
            self._release(action.handle)
        elif kind is act.Connect:
            self._out.connect = True
        elif kind is act.Leave:
            self.left = action.reason
            self._jobs.put(None)
            self.wire.wake()

    def _send(self, action: act.Send) -> None:
        message = action.message
        payload = self._copies.pop(message.handle) if isinstance(message, Fragment | StateCopy) else None
        self._out.messages.append((action.connection, action.channel, message, payload))
        if threading.current_thread() is self._trainer:
            self._out.untold = True

    def _capture(self, order: act.Capture) -> list[Any]:
        found = self.poisons.on_capture(order.fragment, order.round)
        poison, faults = (found[0], [found[1]]) if found is not None else (None, [])
        made = self.arithmetic.capture(order.fragment, order.step, order.codec, poison)
        self._next_copy += 1
        self._copies[self._next_copy] = made.payload
        return [*faults, ev.Captured(order.round, order.fragment, made.digest, made.nbytes, self._next_copy)]

    def _fold(self, order: act.Fold) -> None:
        reference = order.reference if order.reference >= 0 else None
        self.arithmetic.fold(
            order.fragment, self._updates[order.handle], order.version, order.rule, order.alpha, reference
        )

    def _release(self, handle: int) -> None:
        if handle >= OWN_HANDLES:
            self._copies.pop(handle, None)
        else:
            self._updates.pop(handle, None)
            self._peers.pop(handle, None)
            self._out.released.append(handle)

    def _laid(self, laid: Laid) -> None:
        """A copy of the state lies there (the copier's thread)."""
        with self._lock:
            self._next_copy += 1
            self._copies[self._next_copy] = laid.payload
            event = ev.StateCopied(laid.number, laid.digest, laid.nbytes, self._next_copy)
            self._do_all(self.machine.handle(self.now(), event))
        self.wire.wake()

    def _failed(self, error: BaseException) -> None:
        """Something went wrong in a thread: `turn` raises it."""
        self._error = error
        self.wire.wake()

    # the training's side

    def _train(self) -> None:
        child.stay_on(self._step_cores)
        try:
            while (job := self._next_job()) is not None:
                if isinstance(job, act.Adopt):
                    self.give(self._giver.take(job, self._peers.get(job.handle)))
                    self._tell()
                else:
                    self._step(job)
        except BaseException as error:
            self._failed(error)

    def _next_job(self) -> act.Adopt | act.StartStep | None:
        try:
            return self._jobs.get_nowait()
        except queue.Empty:
            self._tell()
            return self._jobs.get()

    def _tell(self) -> None:
        """Have the network thread send what is new: while the device steps, since both need Python's lock."""
        if self._out.untold:
            self._out.untold = False
            self.wire.wake()

    def _step(self, order: act.StartStep) -> None:
        while (found := self.poisons.on_weights()) is not None:
            fragment, poison, event = found
            self.give(event)
            self.arithmetic.poison(fragment, poison)
        start = self.now()
        done = self.arithmetic.step(
            order.step, order.global_step, order.rate_scale, order.batch, order.accumulation, self._tell
        )
        injected_ns = stretch(start + self.origin_ns, self.links.slow_factor, lambda: bool(self.machine.state.ending))
        self.give(ev.StepEnded(done.loss, done.tokens, done.batch, done.accumulation, start, injected_ns))
