"""Code, marked up sparingly: two thirds of Pygments' marks are for what has no colour of its own."""

from collections.abc import Iterator

from pygments.lexers import JavaLexer, PythonLexer
from pygments.token import Comment, Keyword, Name, Operator, String, Text, _TokenType
from sphinx.application import Sphinx

# What keeps a mark, and which; a kind within one of these goes with it.
MARKED = (Comment, Keyword, String, Operator.Word, Name.Builtin, Name.Class, Name.Function)
LANGUAGES = {"python": "page-python", "java": "page-java"}


def _sparing(tokens: Iterator[tuple[_TokenType, str]]) -> Iterator[tuple[_TokenType, str]]:
    for kind, text in tokens:
        yield next((marked for marked in MARKED if kind in marked), Text), text


class SparingPythonLexer(PythonLexer):
    def get_tokens(self, *args: object, **options: object) -> Iterator[tuple[_TokenType, str]]:
        return _sparing(super().get_tokens(*args, **options))


class SparingJavaLexer(JavaLexer):
    def get_tokens(self, *args: object, **options: object) -> Iterator[tuple[_TokenType, str]]:
        return _sparing(super().get_tokens(*args, **options))


def setup(app: Sphinx) -> None:
    app.add_lexer(LANGUAGES["python"], SparingPythonLexer)
    app.add_lexer(LANGUAGES["java"], SparingJavaLexer)
