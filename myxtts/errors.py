"""The one error that a user's own mistake raises, and how it is told."""


class UserError(Exception):
    """Something the user can mend: what was wrong and where, then what would work."""

    exit_code = 2

    def __init__(self, problem: str, remedy: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.remedy = remedy
