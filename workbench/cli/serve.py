"""Serve the pages: watch and steer runs, look through recorded ones, in a browser.

RUNS are folders of runs, or single runs; nothing outside them can be opened.
Two addresses are printed, each with its token: one that may act (start, kill,
set, stop), one that may only look. Ctrl-C ends the pages; runs go on.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.cli import options
from workbench.config import ConfigError

if TYPE_CHECKING:
    from workbench.pages.server import Pages

PORT_MAX = 65535


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of ``workbench serve``."""
    parser.add_argument("runs", metavar="RUNS", nargs="*", type=Path, help="folders of runs, or runs (default: runs)")
    parser.add_argument("--address", metavar="ADDRESS", default="127.0.0.1", help="where to listen (127.0.0.1)")
    parser.add_argument("--port", metavar="N", type=int, default=0, help="port (default: any that is free)")
    parser.add_argument(
        "--host", metavar="NAME", action="append", default=[],
        help="another name by which browsers may call this machine; may be repeated",
    )  # fmt: skip
    options.add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the addresses, serve until Ctrl-C, return 0."""
    from workbench.cli import output

    pages = pages_of(arguments)
    access = pages.site.access
    control, view = pages.url(access.control), pages.url(access.view)
    if arguments.json:
        output.print_json({"control": control, "view": view, "port": pages.port})
    else:
        print(f"to act and look:  {control}\nto look only:     {view}\nCtrl-C ends the pages; runs go on.", flush=True)
    pages.run()
    return 0


def pages_of(arguments: argparse.Namespace) -> Pages:
    """The server that the flags ask for.

    Raises
    ------
    ConfigError
        Flags that cannot work.
    """
    from workbench.pages.access import LOOPBACK, is_loopback, new_access
    from workbench.pages.demo import demo_folder
    from workbench.pages.folders import Folders
    from workbench.pages.site import Site

    if not 0 <= arguments.port <= PORT_MAX:
        raise ConfigError(f"--port {arguments.port}; allowed: 1 to {PORT_MAX}, or 0 for any that is free")
    for path in arguments.runs:
        if not path.is_dir():
            raise ConfigError(f"{path} is no folder; give folders of runs, or none for {options.RUNS}")
    if any(":" in name or "/" in name or not name for name in arguments.host):
        raise ConfigError(f"--host {' '.join(arguments.host)}; allowed: names or IPv4 addresses, without a port")
    if not is_loopback(arguments.address) and not arguments.host:
        raise ConfigError(
            f"--address {arguments.address} lets other machines in; say by which name they call this one: --host NAME"
        )
    site = Site(
        Folders([*(arguments.runs or [options.RUNS]), *demo_folder()]), new_access(hosts=(*LOOPBACK, *arguments.host))
    )
    site.be_nice()
    site.get_ready()
    from workbench.pages.server import Pages

    return Pages(site, arguments.address, arguments.port)
