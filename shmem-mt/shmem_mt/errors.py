"""The one exception that a user is meant to see."""


class UserError(Exception):
    """Bad input. The command prints its text as one line and exits with status 2."""
