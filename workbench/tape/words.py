"""The tape's vocabulary: the texts that code columns stand for, in order of first use."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from workbench.tape.schema import NO_WORD, WORD_LENGTH_MAX, WORDS_MAX


class Words:
    """Texts and their codes; code 0 is the empty text, codes never change.

    It is bounded: texts that are long, or come when it is full, get ``NO_WORD`` and are kept elsewhere.

    Parameters
    ----------
    words : sequence of str
        Vocabulary so far.
    """

    def __init__(self, words: Sequence[str] = ()) -> None:
        self.words = list(words) or [""]
        self._codes = {word: code for code, word in enumerate(self.words)}

    def code(self, text: str) -> int:
        """Code of a text, which joins the vocabulary if it may."""
        found = self._codes.get(text)
        if found is not None:
            return found
        if len(self.words) >= WORDS_MAX or len(text) > WORD_LENGTH_MAX:
            return NO_WORD
        self._codes[text] = len(self.words)
        self.words.append(text)
        return len(self.words) - 1

    def codes(self, texts: Iterable[str]) -> list[int]:
        """Codes of many texts."""
        get = self._codes.get
        return [found if (found := get(text)) is not None else self.code(text) for text in texts]
