"""The nursery: a process that has imported what the others need, and forks them.

It touches no device: a fork after that would hang.  A child starts in a fraction of the time that an interpreter with
JAX takes, and shares the memory of its imports.  Requests and the file descriptors that children inherit come over
one socket; the ends of children are reported on it.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import socket
import sys
from pathlib import Path
from typing import Any

import numpy as np

from workbench.algorithms import orders
from workbench.algorithms.aggregators import AGGREGATORS
from workbench.algorithms.codecs import CODECS
from workbench.algorithms.digest import digest
from workbench.algorithms.fragments import Fragmentation, TensorSpec
from workbench.algorithms.merging import MergeSettings
from workbench.algorithms.syncer_arithmetic import SyncerArithmetic
from workbench.engine import child
from workbench.engine.links import Link

ROLES = {
    "prepare": "workbench.engine.prepare",
    "syncer": "workbench.engine.syncer_process",
    "recorder": "workbench.engine.recorder_process",
    "evaluator": "workbench.engine.evaluator_process",
    "learner": "workbench.engine.learner_process",
    "keeper": "workbench.engine.keeper_process",
    "reference": "workbench.engine.reference_process",
}
"""Modules of the processes; each has ``main(link, arguments) -> exit code``."""

ORDERLY = ("syncer", "recorder")
"""They end the run in order when their supervisor is gone, and so outlive the nursery for some seconds."""

PRELOADED = (
    "jax",
    "flax.nnx",
    "optax",
    "numba",
    "zmq",
    "workbench.engine.prepare",
    "workbench.engine.syncer_process",
    "workbench.engine.evaluator_process",
    "workbench.engine.learner_process",
)


def main() -> int:
    """Serve requests until the supervisor is gone; ``argv``: file descriptor of the socket, pid of the supervisor."""
    fd, parent = int(sys.argv[1]), int(sys.argv[2])
    child.die_with_parent(parent)
    child.default_signals()
    child.name_process("wb-nursery")
    control = socket.socket(fileno=fd)
    for module in PRELOADED:
        __import__(module)
    gc.collect()
    gc.freeze()
    return _Nursery(control).serve()


def warm_up() -> None:
    """Fetch the kernels of a merge from their cache, or compile them, so that no syncer has to: a tiny merge per rule.

    Kernels start no threads, so children may be forked afterwards.
    """
    tensors = (TensorSpec("a", (4, 4), "float32", "matrix"), TensorSpec("b", (8,), "float32", "embedding"))
    for rule in AGGREGATORS:
        arithmetic = SyncerArithmetic(Fragmentation(tensors, (0, 0), 1), [np.zeros(24, np.float32)])
        sent = [np.full(24, value, np.float32) for value in (1.0, 2.0)]
        for codec in CODECS.values():  # as from the wire: nobody may write there
            payload = codec.encode(sent[0], np.zeros(24, np.float32))
            payload.flags.writeable = False
            codec.decode(payload, np.zeros(24, np.float32))
        looks = [orders.look(arithmetic, 0, values, "f32", 0, digest(values)) for values in sent]
        arrived = [found.arrived for found in looks if found.arrived is not None]
        settings = MergeSettings(merge=rule)
        orders.merge(arithmetic, 0, 1, [0, 1], arrived, [1.0, 1.0], [0, 0], settings, fresh_outer=False)


class _Nursery:
    def __init__(self, control: socket.socket) -> None:
        self.control = control
        self.link = Link(control)
        self.children: dict[int, int] = {}
        self.orderly: set[int] = set()
        self.wake_r, self.wake_w = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(self.wake_w)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self.fds: list[int] = []
        self.warm = False
        self.link.send({"ready": True})

    def serve(self) -> int:
        while True:
            writers = [self.control] if self.link.waiting else []
            watched: list[Any] = [self.control, self.wake_r]
            readable, _, _ = select.select(watched, writers, [])
            self.link.flush()
            if self.wake_r in readable:
                os.read(self.wake_r, 4096)
            self.reap()
            if self.control in readable and not self.take():
                self.leave()
                return 0

    def leave(self) -> None:
        """Without a supervisor: those that do not end by themselves are killed, where the kernel does not do it."""
        for pid in self.children:
            if pid not in self.orderly:
                os.kill(pid, signal.SIGKILL)

    def take(self) -> bool:
        """Requests that have come, each with one descriptor beside it; False at the end."""
        data, fds, _, _ = socket.recv_fds(self.control, 1 << 16, 16)
        if not data:
            return False
        self.fds.extend(fds)
        for request in self.link.take(data):
            if "start" in request:
                self.start(request, self.fds.pop(0))
            elif "signal" in request and request["pid"] in self.children:
                os.kill(request["pid"], request["signal"])
        return not self.link.closed

    def start(self, request: dict[str, Any], fd: int) -> None:
        """Fork one process and say its pid."""
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            self.become(request, fd, parent)
        os.close(fd)
        self.children[pid] = request["ticket"]
        if request["start"] in ORDERLY:
            self.orderly.add(pid)
        self.link.send({"started": request["ticket"], "pid": pid})
        if not self.warm:
            self.warm = True
            warm_up()  # while the first child, which prepares the run, is at work

    def become(self, request: dict[str, Any], fd: int, parent: int) -> None:
        """The forked child: never returns."""
        role = request["start"]

        def life() -> int:
            child.default_signals()
            if role not in ORDERLY:
                child.die_with_parent(parent)
            os.close(self.wake_r)
            os.close(self.wake_w)
            self.control.close()
            child.name_process(request["name"])
            child.log_to(Path(request["log"]))
            child.settle(request["nice"], request["cores"])
            os.environ.update(request["environment"])
            module = __import__(ROLES[role], fromlist=["main"])
            code: int = module.main(Link(socket.socket(fileno=fd)), request["arguments"])
            return code

        child.run_and_leave(life)

    def reap(self) -> None:
        """Report children that have ended."""
        while self.children:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self.link.send({"ended": self.children.pop(pid, -1), "pid": pid, "how": child.signal_name(status)})


if __name__ == "__main__":
    child.run_and_leave(main)  # nobody waits for the unloading of what was imported
