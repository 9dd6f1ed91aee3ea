"""Displays texts of the history. Users can write control characters into a comment or a name.
These must not reach the terminal, nor change the order in which a line is read."""

import re

# Controls of ASCII and ISO 8859, characters that turn or isolate the direction of writing,
# separators of lines and paragraphs, annotations and tags. As in tape/src/query/value/plain.rs.
_OBEYED = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f]"
)


def plain_text(text: str) -> str:
    """A text as one line: white space becomes single blanks, a control becomes `�`."""
    return _OBEYED.sub("\ufffd", re.sub(r" ?[^\S ]+", " ", text))


def plain_json(text: str) -> str:
    """JSON in one line, with controls in its strings written by number."""
    return _OBEYED.sub(_by_number, text)


def _by_number(found: re.Match[str]) -> str:
    return "".join(f"\\u{unit.hex()}" for unit in _units(found[0]))


def _units(text: str) -> list[bytes]:
    encoded = text.encode("utf-16-be")
    return [encoded[at : at + 2] for at in range(0, len(encoded), 2)]
