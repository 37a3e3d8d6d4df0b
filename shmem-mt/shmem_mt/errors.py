"""The exceptions that end a command: what a user is meant to see, and what a signal asks for."""


class UserError(Exception):
    """Bad input. The command prints its text as one line and exits with status 2."""


class MeasuredOtherwiseError(UserError):
    """The run folder has results of other programs, another machine or another build of a library."""


class Ended(KeyboardInterrupt):
    """A signal asks the command to end: as ^C does, with the status of that signal."""

    def __init__(self, number):
        super().__init__(number)
        self.status = 128 + number
