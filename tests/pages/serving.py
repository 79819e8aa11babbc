"""A server of pages in a process of its own, as ``workbench serve`` starts it but with a tiny model to train."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.engine.real_runs import tiny
from workbench.pages.access import new_access
from workbench.pages.addresses import Address
from workbench.pages.demo import demo_folder
from workbench.pages.folders import Folders
from workbench.pages.site import Site

LEARNERS = 2
SLOWER = {"model.width": 64, "model.mlp": 128, "model.context": 64, "inner.batch": 8, "period": 12}
"""A step that takes some tens of milliseconds: the browser beside it gets its share of a small machine."""
STOP_LIMIT_S = 30.0


class Served(NamedTuple):
    """Attributes
    ----------
    port : int
    control, view : str
        Tokens.
    """

    port: int
    control: str
    view: str

    def url(self, token: str, page: str = "start", run: str = "", event: int = -1, **more: Any) -> str:
        """Address of a page."""
        return f"http://localhost:{self.port}/{Address(page, run, event, **more).query(token)}"


@contextmanager
def served(root: Path, again: Served | None = None) -> Iterator[Served]:
    """Serve the runs below a folder until the context is left; ``again`` under the address of a server before."""
    as_before = [str(again.port), again.control, again.view] if again else []
    command = [sys.executable, "-m", "tests.pages.serving", str(root), *as_before]
    log = root / "pages.log"
    with log.open("w", encoding="utf-8") as errors:
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
        try:
            assert server.stdout is not None
            words = server.stdout.readline().split()
            assert len(words) == 3, log.read_text(encoding="utf-8")
            yield Served(int(words[0]), words[1], words[2])
        finally:
            server.terminate()
            server.wait(STOP_LIMIT_S)
            if server.stdout is not None:
                server.stdout.close()


def main(root: str, port: str = "0", control: str = "", view: str = "") -> None:
    """Serve, and print port and tokens on a line."""
    from workbench.pages.server import Pages

    site = Site(Folders([Path(root), *demo_folder()]), new_access(view, control), tiny(LEARNERS, **SLOWER))
    pages = Pages(site, port=int(port))
    print(pages.port, site.access.control, site.access.view, flush=True)
    pages.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
