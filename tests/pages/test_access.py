from __future__ import annotations

import asyncio
import gc
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tornado.iostream import StreamClosedError
from tornado.websocket import WebSocketClosedError

from tests.engine.real_runs import until
from tests.pages.serving import Served, served
from workbench.config import ConfigError
from workbench.pages.access import Access, host_name, is_loopback, new_access
from workbench.pages.addresses import Address, address_in, address_of, token_of, unread
from workbench.pages.folders import Folders
from workbench.pages.server import without_leavers

VIEW, CONTROL = "v" * 20, "c" * 20
ROOT = Path(__file__).parents[2]
ACCESS = Access(VIEW, CONTROL)


@pytest.mark.parametrize(
    ("token", "host", "role"),
    [
        (CONTROL, "localhost:5006", "control"),
        (VIEW, "127.0.0.1:5006", "view"),
        (VIEW, "LOCALHOST", "view"),
        ("", "localhost", None),
        (CONTROL[:-1], "localhost", None),
        (CONTROL + "x", "localhost", None),
        ("ü" * 20, "localhost", None),
        ("c" * 10_000, "localhost", None),
        (CONTROL, "evil.example:5006", None),
        (CONTROL, "", None),
        (CONTROL, "localhost.evil.example", None),
    ],
)
def test_a_role_needs_its_token_and_a_name_of_this_server(token: str, host: str, role: str | None) -> None:
    assert ACCESS.role(token, host) == role


def test_drawn_tokens_differ_and_given_ones_are_checked() -> None:
    one, other = new_access(), new_access()
    assert len({one.view, one.control, other.view, other.control}) == 4
    with pytest.raises(ConfigError, match="the view token has 3 characters"):
        new_access(view="abc")
    with pytest.raises(ConfigError, match="two different ones"):
        new_access(VIEW, VIEW)


def test_names_of_hosts() -> None:
    assert [host_name(h) for h in ("A.b:80", "[::1]:80", "::1", "a")] == ["a.b", "::1", "::1", "a"]
    assert [is_loopback(a) for a in ("localhost", "127.0.0.9", "::1", "0.0.0.0", "10.0.0.1", "x")] == [
        True, True, True, False, False, False,
    ]  # fmt: skip


def test_an_address_says_where_and_never_what_to_do() -> None:
    asked = Address("replay", "runs/a b&c", 41)
    assert address_in(asked.query("t&k")) == asked
    assert token_of({"token": [b"one", b"two"]}) == "two"
    assert address_in("?page=admin&event=-5&run=x") == Address("start", "x", -1)
    assert address_in("?page=live&event=99999999999999&kill=2") == Address("live", "", -1)


def test_an_address_of_a_comparison_names_all_its_runs_in_order() -> None:
    many = Address("compare", "g", others=tuple("abcdef"))
    assert address_in(many.query("t")) == many
    found = address_in("?page=compare&run=b&run=&run=a&others=c")
    assert (found.run, found.others) == ("b", ("a", "c"))
    assert address_in("?page=compare&others=a&others=b").others == ("b",)
    assert address_in("?page=replay&run=b&run=a").run == "a"
    twice = {"page": ["compare"], "run": ["b", "a"]}
    assert unread(twice, address_of(twice)) == (), "all that it says was understood"


def run_in(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text("learners = 2\n", encoding="utf-8")
    return folder


def test_only_runs_below_the_given_folders_are_found_and_opened(tmp_path: Path) -> None:
    inside, outside = run_in(tmp_path / "runs" / "sub" / "a"), run_in(tmp_path / "secret")
    (tmp_path / "runs" / "link").symlink_to(outside)
    folders = Folders([tmp_path / "runs"])
    assert folders.names() == ["runs/sub/a"]
    assert folders.path("runs/sub/a") == inside.resolve()
    assert folders.name(inside) == "runs/sub/a"
    for name in ("runs/../secret", "runs/link", "secret", str(outside), "runs", "", "runs/sub", "runs/a\0b", "x" * 600):
        with pytest.raises(ConfigError, match="there is no run"):
            folders.path(name)
    with pytest.raises(ConfigError, match="does not lie below"):
        folders.name(outside)


def test_a_single_run_may_be_given_and_new_ones_go_elsewhere(tmp_path: Path) -> None:
    run = run_in(tmp_path / "one")
    (tmp_path / "more").mkdir()
    assert Folders([run]).names() == ["one"]
    assert Folders([run]).new_runs is None
    assert Folders([run, tmp_path / "more"]).new_runs == (tmp_path / "more").resolve()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("runs")) as found:
        yield found


UPGRADE = {
    "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
}  # fmt: skip


def code(url: str, **headers: str) -> int:
    """Status of an answer, with whatever headers."""
    parts = urlsplit(url)
    connection = HTTPConnection(parts.netloc, timeout=60)
    try:
        connection.request("GET", f"{parts.path}?{parts.query}", headers=headers)
        return connection.getresponse().status
    finally:
        connection.close()


def test_the_dashboard_behind_its_door_answers_as_the_server_does(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "panel", "serve", "apps/dashboard.py", "--auth-module", "apps/door.py",
               "--address", "127.0.0.1", "--port", "0"]  # fmt: skip
    tokens = {"WORKBENCH_RUNS": str(tmp_path), "WORKBENCH_VIEW_TOKEN": VIEW, "WORKBENCH_CONTROL_TOKEN": CONTROL}
    with (tmp_path / "log").open("w+", encoding="utf-8") as log:
        server = subprocess.Popen(command, env={**os.environ, **tokens}, cwd=ROOT, stdout=log, stderr=log)
        try:
            until(lambda: "running at" in (tmp_path / "log").read_text(encoding="utf-8"), "it listens")
            port = re.findall(r"127.0.0.1:(\d+)", (tmp_path / "log").read_text(encoding="utf-8"))[0]
            base = f"http://localhost:{port}/dashboard"
            assert code(f"{base}?token={VIEW}") == 200
            for url in (base, f"{base}?token={'x' * 20}", f"{base}/metadata", f"{base}/autoload.js"):
                assert code(url) == 403, url
            assert code(f"{base}?token={VIEW}", Host="evil.example") == 403
            assert code(f"{base}/ws", Origin=f"http://localhost:{port}", **UPGRADE) == 403
            assert VIEW not in (tmp_path / "log").read_text(encoding="utf-8").partition("running at")[2]
        finally:
            server.terminate()
            server.wait(60)


def test_nothing_is_answered_without_token_or_under_another_name(site: Served) -> None:
    good, base = site.url(site.view), f"http://localhost:{site.port}"
    assert code(good) == 200
    for url in (base + "/", base + "/autoload.js", site.url("x" * 32), f"{base}/ws"):
        assert code(url) == 403, url
    assert code(good, Host="evil.example") == 403
    assert code(f"{base}/ws?token={site.control}", Origin="http://evil.example", **UPGRADE) == 403
    assert code(f"{base}/ws", Origin=base, **UPGRADE) == 403


def test_who_leaves_in_the_middle_leaves_no_trace_in_the_log_and_faults_do(caplog: pytest.LogCaptureFixture) -> None:
    async def fail(error: Exception) -> None:
        raise error

    async def all_of_them() -> None:
        asyncio.get_running_loop().set_exception_handler(without_leavers)
        for error in (WebSocketClosedError(), StreamClosedError(), ValueError("a fault")):
            task = asyncio.create_task(fail(error))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            del task
            gc.collect()

    asyncio.run(all_of_them())
    told = [record.exc_info[1] for record in caplog.records if record.exc_info]
    assert [str(one) for one in told] == ["a fault"]
