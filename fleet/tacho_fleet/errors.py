"""Errors in PostgreSQL's style: primary, detail, hint."""

from tacho_fleet.plain import plain_text


class FleetError(Exception):
    """An error that is shown to the user instead of an answer."""

    def __init__(self, message: str, detail: str | None = None, hint: str | None = None) -> None:
        """`message` in lower case without full stop; the others are sentences."""
        super().__init__(message)
        self.message, self.detail, self.hint = message, detail, hint

    def lines(self) -> list[str]:
        """The printed lines."""
        said = [("error", self.message), ("detail", self.detail), ("hint", self.hint)]
        return [f"{label}: {plain_text(text)}" for label, text in said if text]
