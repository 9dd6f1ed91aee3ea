"""Errors as PostgreSQL tells them: what, why, what to do."""

from tacho_fleet.plain import plain_text


class FleetError(Exception):
    """Something that the user is told instead of an answer."""

    def __init__(self, message: str, detail: str | None = None, hint: str | None = None) -> None:
        """`message` in lower case without full stop; the others are sentences."""
        super().__init__(message)
        self.message, self.detail, self.hint = message, detail, hint

    def lines(self) -> list[str]:
        """What is printed, a line each."""
        said = [("error", self.message), ("detail", self.detail), ("hint", self.hint)]
        return [f"{label}: {plain_text(text)}" for label, text in said if text]
