"""What this machine has, and what to type where something is amiss.

Every check stands alone: one that fails is reported and the others go on.
Exit code 1: something that the workbench needs is broken (warnings leave 0).
"""

from __future__ import annotations

import argparse
from pathlib import Path

from workbench.cli import options


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of ``workbench doctor``."""
    parser.add_argument("--out", metavar="FOLDER", type=Path, default=Path(), help="where runs would go (default: .)")
    options.add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run all checks, print them, return 1 if something is broken."""
    from workbench.cli import checks

    findings = checks.run_all(arguments.out)
    broken = any(finding.broken for finding in findings)
    if arguments.json:
        print_json(findings)
    else:
        show(findings)
    return 1 if broken else 0


def print_json(findings: list) -> None:
    """Print the findings as JSON."""
    from workbench.cli import output

    entries = [finding._asdict() for finding in findings]
    output.print_json({"ok": not any(finding.broken for finding in findings), "checks": entries})


def show(findings: list) -> None:
    """Print the findings as a table, then what to do about those that need it."""
    from workbench.cli import output

    screen = output.console()
    screen.print(output.pairs("", rows(findings)))
    notes = [finding for finding in findings if finding.note]
    for finding in notes:
        word = "broken" if finding.broken else "warning"
        screen.print(f"{word}: {finding.name}: {finding.note}", style="red" if finding.broken else "yellow")
        if finding.type_this:
            screen.print(f"  type: {finding.type_this}", soft_wrap=True)
    if not notes:
        screen.print("nothing amiss", style="green")


def rows(findings: list) -> list[tuple[str, str]]:
    """Return labels and values; those of one group share a row."""
    table: dict[str, list[str]] = {}
    for finding in findings:
        text = f"{finding.name} {finding.value}" if finding.group else finding.value
        table.setdefault(finding.group or finding.name, []).append(text)
    return [(name, ", ".join(values)) for name, values in table.items()]
