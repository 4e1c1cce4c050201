"""What a server offers: everything to its owner; with `minifuse app --public` less, and only so much to each visitor.

All parts of the app ask `policy()`: the pages what they may show, the queue how many may run at once, the frame how to print
an error. So what is public is decided in this file alone.
"""

import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from minifuse.core.errors import MinifuseError

VARIABLE = "MINIFUSE_APP_PUBLIC"  # environment variable that `minifuse app --public` sets

# Parts that a server may keep to its owner.
MACHINE = "machine"  # what `minifuse doctor` finds: paths, versions, devices
VERSIONS = "versions"  # of the packages that saved results were measured with
OWN_CODE = "own code"  # kernels that a visitor writes

AT_HOME = 'on your own machine: pip install "minifuse[app]", then minifuse app'
PATHS = re.compile(r"(?<![\w.)\]/\\])(?:[A-Za-z]:)?[/\\](?:[^\s/\\:'\"]+[/\\])+([^\s/\\:'\"]*)")


class NotOfferedError(MinifuseError):
    """A visitor asked for something that this server keeps to its owner, or for more than it gives."""


@dataclass(frozen=True)
class Policy:
    """What a server offers to a visitor, and how much of it. The defaults offer everything."""

    hidden: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Parts that are not offered, and why."""
    most: Mapping[str, float] = field(default_factory=dict, hash=False)
    """The largest value of a setting, by its name; other settings have the limits of their controls only."""
    hides_paths: bool = False
    """True if messages name files without their folders."""
    max_visitors: float = math.inf
    jobs_at_once: float = math.inf
    """Races and trainings that run at the same time; others wait in a line."""
    max_waiting: float = math.inf
    """Visitors in the line."""
    turn_s: float = math.inf
    """Seconds of a turn, after which a training goes to the end of the line, if others wait."""
    jobs_per_minute: float = math.inf
    """Races and trainings that a visitor may begin."""
    draws_per_minute: float = math.inf
    """Pages that a visitor may open, and changes of their controls."""

    def offers(self, part: str) -> bool:
        """Return True if a part is offered."""
        return part not in self.hidden

    def check_part(self, part: str) -> None:
        """Check that a part is offered.

        Raises
        ------
        NotOfferedError
            It is not; the message says why, and where it is.
        """
        if part in self.hidden:
            raise NotOfferedError(self.hidden[part])

    def check_size(self, name: str, value: float) -> None:
        """Check that a setting is not above its limit.

        Raises
        ------
        NotOfferedError
            It is.
        """
        if value > self.most.get(name, math.inf):
            raise NotOfferedError(
                f"{name}: got {value:g}, and a visitor of this server may choose at most {self.most[name]:g}; choose less, "
                f"or use minifuse {AT_HOME}"
            )

    def clean_message(self, text: str) -> str:
        """Return a message as a visitor may read it."""
        return PATHS.sub(r"\1", text) if self.hides_paths else text


PRIVATE = Policy()
PUBLIC = Policy(
    hidden={
        MACHINE: f"This server shows nothing about its machine. See what yours has {AT_HOME}",
        VERSIONS: "This server names no versions. They are in project/benchmarks/results of the repository.",
        OWN_CODE: f"This server is open to many, so it runs no code of its visitors. Run your kernel {AT_HOME}",
    },
    most={"epochs": 200},
    hides_paths=True,
    max_visitors=60,
    jobs_at_once=1,
    max_waiting=30,
    turn_s=15,
    jobs_per_minute=8,
    draws_per_minute=240,
)


def policy() -> Policy:
    """Return what this server offers."""
    return PUBLIC if os.environ.get(VARIABLE) else PRIVATE
