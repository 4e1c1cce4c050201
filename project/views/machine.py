"""The facts of the map: the findings about this machine."""

from threading import Timer

from minifuse.cli.doctor import examine

PAUSE_S = 0.5  # seconds before the machine is examined, so that the rest of the page is drawn first


def examine_machine(*, runs_kernels: bool = True) -> list[dict[str, str]]:
    """Return the findings of `minifuse doctor` as rows."""
    return [
        {
            "part": heading,
            "what": finding.topic,
            "found": finding.found,
            "to do": "" if finding.ok or not finding.needed else finding.advice,
        }
        for heading, findings in examine(runs_kernels=runs_kernels).items()
        for finding in findings
    ]


class Findings:
    """The findings about this machine. A thread tries the kernels, since compiling takes a second or two.

    Attributes
    ----------
    rows : list of dict
        The findings so far.
    """

    def __init__(self) -> None:
        self.rows = examine_machine(runs_kernels=False)
        self._error: Exception | None = None
        self._thread = Timer(PAUSE_S, self._look)
        self._thread.name, self._thread.daemon = "minifuse-doctor", True
        self._thread.start()

    def _look(self) -> None:
        try:
            self.rows = examine_machine()
        except Exception as error:  # raised by are_complete, in the thread of the page
            self._error = error

    def are_complete(self, seconds: float = 0) -> bool:
        """Wait at most this long for the trial of kernels, and return True if it has ended.

        Raises
        ------
        Exception
            The look ended with it.
        """
        self._thread.join(seconds)
        if self._error is not None:
            raise self._error
        return not self._thread.is_alive()
