"""SIGKILL at any moment of recording: what was appended is on the tape, once."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from workbench.protocol.records import Kind
from workbench.tape import open_tape, read_journal

WRITER = """
import sys
from workbench.protocol.records import Kind, Record
from workbench.tape import Input, JournalWriter, Recorder, read_journal
folder = sys.argv[1]
with JournalWriter(folder + "/journal", {"run_id": "r"}) as journal:
    seq = len(read_journal(journal.path).records)
    recorder = Recorder(folder)
    print("ready", flush=True)
    while True:
        for _ in range(5):
            seq += 1
            step = Record(Kind.STEP_ENDED, 3, 0, seq, seq, step=seq, clock=(0, 0, 0, seq), reason=str(seq % 7))
            journal.append([step, Input(3, 0, seq, b"%d" % seq)])
            print(seq, flush=True)
        recorder.drain()
"""
TRIES = 4


def test_kill_in_mid_commit_loses_and_doubles_nothing(tmp_path: Path) -> None:
    chance = random.Random(3)
    for _ in range(TRIES):
        child = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        time.sleep(chance.uniform(0.02, 0.5))
        child.send_signal(signal.SIGKILL)
        told = [int(line) for line in child.stdout.read().splitlines(keepends=True) if line.endswith("\n")]
        child.stdout.close()
        child.wait()
        journal = read_journal(tmp_path / "journal")
        assert [r.seq for r in journal.records] == list(range(1, len(journal.records) + 1))
        assert not told or len(journal.records) >= told[-1]
        tree = open_tape(tmp_path)
        assert tree.wb.records() == journal.records
        assert [i.data for i in tree.wb.inputs()] == [b"%d" % r.seq for r in journal.records]
        assert tree.wb.events(Kind.STEP_ENDED).sizes["event"] == tree["steps"].sizes["step"]
