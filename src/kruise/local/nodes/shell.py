"""A small POSIX shell that runs in no time: it tells what a script prints, how long it takes and how it ends.

It knows lists (`;`, `&&`, `||`, newlines), pipes, subshells, `if`, `for`, `while`, `until`, variables, arithmetic,
command substitution, and the commands that jobs in examples are made of. Output of a command that is redirected to a
file goes nowhere. A script that runs for ever, or that is too hard to read, counts as
endless: a service, for all we know.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence

STEP_LIMIT = 20_000
LINE_LIMIT = 5_000
SHELLS = frozenset({"sh", "bash", "ash", "dash"})
QUICK = {
    **dict.fromkeys(("cat", "chmod", "chown", "cp", "cut", "env", "grep", "id", "ln", "ls", "mkdir", "mv"), 0.01),
    **dict.fromkeys(("ps", "pwd", "rm", "sed", "sort", "tee", "touch", "tr", "uname", "wc", "whoami", "awk"), 0.01),
    **dict.fromkeys(("curl", "dig", "nc", "nslookup", "ping", "wget", "kubectl", "git", "tar", "dd"), 0.2),
    **dict.fromkeys(("perl", "openssl", "mysql", "psql", "redis-cli", "stress"), 2.0),
}
"""Programs that do something and end, with the seconds that we say they take."""

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_NAME = re.compile(r"[A-Za-z_]\w*|[?#@*$0-9]")
_DURATION = re.compile(r"(\d+(?:\.\d*)?|\.\d+)([smhd]?)")
_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_OPERATORS = ("&&", "||", ";;", ">>", ">&", "<<", "\n", ";", "&", "|", "(", ")", ">", "<")
_ENDS = frozenset({"then", "do", "done", "fi", "else", "elif", "}", ")"})
_SOFT_REDIRECT = re.compile(r"\d+$")


class EndlessError(Exception):
    """The script does not end within what we care to look at."""


class _UnclearError(Exception):
    """Not a script that we can read."""


class _ExitError(Exception):
    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class _LoopError(Exception):
    def __init__(self, again: bool) -> None:
        super().__init__(again)
        self.again = again


@dataclasses.dataclass(slots=True)
class Run:
    """A run so far. `lines` have the seconds since the start."""

    seconds: float = 0.0
    lines: list[tuple[float, str]] = dataclasses.field(default_factory=list)
    steps: int = 0
    until: float = float("inf")


# Words: a word is a list of (text, quoted) pieces, expanded when the command runs.

Piece = tuple[str, bool]


@dataclasses.dataclass(frozen=True, slots=True)
class _Word:
    pieces: tuple[Piece, ...]

    @property
    def plain(self) -> str:
        return self.pieces[0][0] if len(self.pieces) == 1 and not self.pieces[0][1] else ""


Token = _Word | str


def _tokens(text: str) -> list[Token]:
    found: list[Token] = []
    at = 0
    while at < len(text):
        letter = text[at]
        if letter in " \t\r":
            at += 1
        elif text.startswith("\\\n", at):
            at += 2
        elif letter == "#":
            at = text.find("\n", at) if "\n" in text[at:] else len(text)
        else:
            operator = next((sign for sign in _OPERATORS if text.startswith(sign, at)), "")
            if operator:
                found.append(operator)
                at += len(operator)
            else:
                word, at = _word(text, at)
                found.append(word)
    return found


def _word(text: str, at: int) -> tuple[_Word, int]:
    pieces: list[Piece] = []
    bare = ""
    while at < len(text):
        letter = text[at]
        if letter in " \t\r\n;&|<>()":
            break
        if letter == "\\":
            pieces, bare = [*pieces, (bare, False)], ""
            pieces.append((text[at + 1 : at + 2].replace("$", "\0"), True))
            at += 2
        elif letter == "'":
            end = text.find("'", at + 1)
            if end < 0:
                raise _UnclearError("a quote is not closed")
            pieces += [(bare, False), (text[at + 1 : end].replace("$", "\0").replace("`", "\1"), True)]
            bare, at = "", end + 1
        elif letter == '"':
            inner, at = _quoted(text, at + 1)
            pieces += [(bare, False), (inner, True)]
            bare = ""
        elif letter == "$" and text[at + 1 : at + 2] in ("(", "{"):
            end = _closing(text, at + 1)
            bare += text[at:end]
            at = end
        elif letter == "`":
            end = text.find("`", at + 1)
            if end < 0:
                raise _UnclearError("a back quote is not closed")
            bare += f"$({text[at + 1 : end]})"
            at = end + 1
        else:
            bare += letter
            at += 1
    pieces.append((bare, False))
    kept = tuple(piece for piece in pieces if piece[0] or piece[1])
    return _Word(kept or (("", True),)), at


def _quoted(text: str, at: int) -> tuple[str, int]:
    inner = ""
    while at < len(text):
        letter = text[at]
        if letter == '"':
            return inner, at + 1
        if letter == "\\" and text[at + 1 : at + 2] in ('"', "\\", "$", "`"):
            inner += text[at + 1].replace("$", "\0").replace("`", "\1")
            at += 2
        elif letter == "$" and text[at + 1 : at + 2] in ("(", "{"):
            end = _closing(text, at + 1)
            inner += text[at:end]
            at = end
        elif letter == "`":
            end = text.find("`", at + 1)
            if end < 0:
                raise _UnclearError("a back quote is not closed")
            inner += f"$({text[at + 1 : end]})"
            at = end + 1
        else:
            inner += letter
            at += 1
    raise _UnclearError("a quote is not closed")


def _closing(text: str, at: int) -> int:
    """The position after the bracket that closes the one at `at`."""
    opening = text[at]
    closing = ")" if opening == "(" else "}"
    depth = 0
    for position in range(at, len(text)):
        depth += (text[position] == opening) - (text[position] == closing)
        if depth == 0:
            return position + 1
    raise _UnclearError(f"a {opening} is not closed")


# Grammar

Action = Callable[["_Shell"], int]


class _Parser:
    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens
        self._at = 0

    def script(self) -> Action:
        action = self._list()
        if self._at < len(self._tokens):
            raise _UnclearError(f"unexpected {self._tokens[self._at]!r}")
        return action

    def _peek(self) -> str:
        if self._at >= len(self._tokens):
            return ""
        token = self._tokens[self._at]
        return token if isinstance(token, str) else token.plain

    def _take(self, expected: str) -> None:
        if self._peek() != expected:
            raise _UnclearError(f"expected {expected}, found {self._peek()!r}")
        self._at += 1

    def _skip_ends(self) -> None:
        while self._peek() in (";", "\n", "&"):
            self._at += 1

    def _list(self) -> Action:
        actions: list[Action] = []
        self._skip_ends()
        while self._at < len(self._tokens) and self._peek() not in _ENDS:
            actions.append(self._and_or())
            if self._peek() == "&":
                # In the background: what it does is not waited for.
                actions.pop()
            self._skip_ends()

        def run(shell: _Shell) -> int:
            for action in actions:
                shell.code = action(shell)
            return shell.code

        return run

    def _and_or(self) -> Action:
        parts: list[tuple[str, Action]] = [("", self._pipeline())]
        while self._peek() in ("&&", "||"):
            operator = self._peek()
            self._at += 1
            while self._peek() == "\n":
                self._at += 1
            parts.append((operator, self._pipeline()))

        def run(shell: _Shell) -> int:
            code = 0
            for operator, action in parts:
                if not operator or (operator == "&&") == (code == 0):
                    code = shell.code = action(shell)
            return code

        return run

    def _pipeline(self) -> Action:
        inverted = self._peek() == "!"
        if inverted:
            self._at += 1
        parts = [self._command()]
        while self._peek() == "|":
            self._at += 1
            parts.append(self._command())

        def run(shell: _Shell) -> int:
            # Only the end of a pipe is seen, and what it reads is not modelled, except that it passes on.
            if len(parts) > 1:
                text = shell.captured(parts[0])
                for part in parts[1:]:
                    shell.stdin, text = text, ""
                    text = shell.captured(part)
                shell.print(text)
                shell.stdin = ""
                code = shell.code
            else:
                code = parts[0](shell)
            return int(code == 0) if inverted else code

        return run

    def _command(self) -> Action:
        word = self._peek()
        compound = {"if": self._if, "for": self._for, "while": self._while, "until": self._while, "{": self._group}
        if word == "(":
            return self._redirected(self._subshell())
        if word in compound:
            return self._redirected(compound[word]())
        return self._simple()

    def _redirected(self, action: Action) -> Action:
        quiet = False
        while self._peek() in (">", ">>", "<", ">&"):
            quiet = quiet or self._peek() in (">", ">>")
            self._at += 2
        return (lambda shell: shell.quietly(action)) if quiet else action

    def _subshell(self) -> Action:
        self._take("(")
        inner = self._list()
        self._take(")")

        def run(shell: _Shell) -> int:
            kept = dict(shell.variables)
            try:
                return inner(shell)
            except _ExitError as ended:
                return ended.code
            finally:
                shell.variables = kept

        return run

    def _group(self) -> Action:
        self._take("{")
        inner = self._list()
        self._take("}")
        return inner

    def _if(self) -> Action:
        self._at += 1
        branches: list[tuple[Action, Action]] = []
        otherwise: Action | None = None
        condition = self._list()
        self._take("then")
        branches.append((condition, self._list()))
        while self._peek() == "elif":
            self._at += 1
            condition = self._list()
            self._take("then")
            branches.append((condition, self._list()))
        if self._peek() == "else":
            self._at += 1
            otherwise = self._list()
        self._take("fi")

        def run(shell: _Shell) -> int:
            for condition, body in branches:
                if condition(shell) == 0:
                    return body(shell)
            return otherwise(shell) if otherwise is not None else 0

        return run

    def _for(self) -> Action:
        self._at += 1
        name = self._peek()
        self._at += 1
        words: list[_Word] = []
        self._take("in")
        while self._peek() not in (";", "\n", "do", ""):
            token = self._tokens[self._at]
            if isinstance(token, str):
                raise _UnclearError(f"unexpected {token}")
            words.append(token)
            self._at += 1
        self._skip_ends()
        self._take("do")
        body = self._list()
        self._take("done")

        def run(shell: _Shell) -> int:
            for value in [field for word in words for field in shell.fields(word)]:
                shell.variables[name] = value
                if not shell.once(body):
                    break
            return shell.code

        return run

    def _while(self) -> Action:
        wanted = self._peek() == "while"
        self._at += 1
        condition = self._list()
        self._take("do")
        body = self._list()
        self._take("done")

        def run(shell: _Shell) -> int:
            while (condition(shell) == 0) == wanted:
                shell.step()
                if not shell.once(body):
                    break
            return 0

        return run

    def _simple(self) -> Action:
        words: list[_Word] = []
        quiet = False
        while self._at < len(self._tokens):
            token = self._tokens[self._at]
            if isinstance(token, _Word):
                words.append(token)
                self._at += 1
            elif token in (">", ">>", "<", ">&", "<<"):
                if token == "<<":
                    raise _UnclearError("here documents are not read")
                stream = words[-1].plain if words else ""
                numbered = bool(_SOFT_REDIRECT.match(stream)) and len(stream) == 1
                if numbered:
                    words.pop()
                if token in (">", ">>"):
                    target = self._tokens[self._at + 1] if self._at + 1 < len(self._tokens) else ""
                    to_terminal = isinstance(target, _Word) and target.plain in ("/dev/stdout", "/dev/stderr")
                    quiet = quiet or (not to_terminal and (not numbered or stream == "1"))
                self._at += 2
            else:
                break
        if not words:
            raise _UnclearError(f"unexpected {self._peek()!r}")
        if not quiet:
            return lambda shell: shell.simple(words)
        return lambda shell: shell.quietly(lambda inner: inner.simple(words))


class _Shell:
    def __init__(self, run: Run, variables: Mapping[str, str], unknown_ends: bool) -> None:
        self.run = run
        self.variables = dict(variables)
        self.code = 0
        self.stdin = ""
        self._unknown_ends = unknown_ends
        self._quiet = 0
        self._capture: list[str] | None = None
        self._partial = ""

    # Time and output

    def step(self) -> None:
        self.run.steps += 1
        if self.run.steps > STEP_LIMIT:
            raise EndlessError

    def sleep(self, seconds: float) -> None:
        self.run.seconds += seconds
        if self.run.seconds > self.run.until:
            raise EndlessError

    def print(self, text: str) -> None:
        if self._quiet or not text:
            return
        if self._capture is not None:
            self._capture.append(text)
            return
        *whole, self._partial = (self._partial + text).split("\n")
        for line in whole:
            self.run.lines.append((self.run.seconds, line))
        if len(self.run.lines) > LINE_LIMIT:
            del self.run.lines[: -LINE_LIMIT // 2]

    def finish(self) -> None:
        if self._partial:
            self.run.lines.append((self.run.seconds, self._partial))
            self._partial = ""

    def quietly(self, action: Action) -> int:
        self._quiet += 1
        try:
            return action(self)
        finally:
            self._quiet -= 1

    def captured(self, action: Action) -> str:
        before, self._capture = self._capture, []
        try:
            self.code = action(self)
            return "".join(self._capture)
        finally:
            self._capture = before

    def once(self, body: Action) -> bool:
        """One turn of a loop; whether it goes on."""
        try:
            self.code = body(self)
        except _LoopError as jump:
            return jump.again
        return True

    # Expansion

    def text(self, word: _Word) -> str:
        return "".join(_real(self._expand(piece) if "$" in piece else piece) for piece, _ in word.pieces)

    def fields(self, word: _Word) -> list[str]:
        """A word without quotes becomes as many words as its value has."""
        if any(quoted for _, quoted in word.pieces) or not any("$" in piece for piece, _ in word.pieces):
            return [self.text(word)]
        return self.text(word).split()

    def _expand(self, text: str) -> str:
        result = ""
        at = 0
        while at < len(text):
            start = text.find("$", at)
            if start < 0:
                return result + text[at:]
            result += text[at:start]
            at = start + 1
            if text.startswith("((", at):
                end = _closing(text, at)
                result += str(self._arithmetic(text[at + 2 : end - 2]))
                at = end
            elif text.startswith("(", at):
                end = _closing(text, at)
                inner = _Parser(_tokens(_real(text[at + 1 : end - 1]))).script()
                result += self.captured(inner).rstrip("\n")
                at = end
            elif text.startswith("{", at):
                end = _closing(text, at)
                result += self._braced(text[at + 1 : end - 1])
                at = end
            else:
                matched = _NAME.match(text, at)
                if matched is None:
                    result += "$"
                else:
                    result += self._value(matched[0])
                    at = matched.end()
        return result

    def _braced(self, inner: str) -> str:
        name, sign, default = inner.partition(":-")
        value = self._value(name)
        return value if value or not sign else self._expand(default)

    def _value(self, name: str) -> str:
        if name == "?":
            return str(self.code)
        if name == "$":
            return "1"
        return self.variables.get(name, "")

    def _arithmetic(self, text: str) -> int:
        text = self._expand(text) if "$" in text else text
        named = re.sub(r"[A-Za-z_]\w*", lambda matched: self._value(matched[0]) or "0", text)
        if not re.fullmatch(r"[\d\s+\-*/%()<>=!&|]*", named) or any(sign in named for sign in ("**", "<<", ">>")):
            raise _UnclearError(f"arithmetic {text!r}")
        python = named.replace("/", "//").replace("&&", " and ").replace("||", " or ")
        try:
            return int(eval(python, {"__builtins__": {}}, {}))  # only digits and operators are left
        except (SyntaxError, ArithmeticError, TypeError, ValueError) as error:
            raise _UnclearError(f"arithmetic {text!r}: {error}") from error

    # Commands

    def simple(self, words: Sequence[_Word]) -> int:
        self.step()
        rest = list(words)
        while rest and (matched := _ASSIGNMENT.fullmatch(_head(rest[0]))) is not None:
            value = _Word(((matched[2], False), *rest[0].pieces[1:]))
            self.variables[matched[1]] = self.text(value)
            rest.pop(0)
        argv = [field for word in rest for field in self.fields(word)]
        return self.command(argv) if argv else 0

    def command(self, argv: Sequence[str]) -> int:
        name, arguments = argv[0].rpartition("/")[2], list(argv[1:])
        if name in ("echo", "printf"):
            self.print(_echo(arguments) if name == "echo" else _printf(arguments))
        elif name == "sleep":
            self.sleep(sum(_duration(text) for text in arguments))
        elif name in ("exit", "return"):
            raise _ExitError(int(arguments[0]) % 256 if arguments and arguments[0].isdecimal() else self.code)
        elif name in ("true", ":", "trap", "set", "export", "cd", "wait", "sync", "kill", "date", "shift", "read"):
            self._builtin(name, arguments)
        elif name == "false":
            return 1
        elif name in ("test", "["):
            return 0 if self._test([text for text in arguments if text != "]"]) else 1
        elif name in ("break", "continue"):
            raise _LoopError(name == "continue")
        elif name in ("exec", "time", "nohup", "env") and arguments:
            return self.command(arguments)
        elif name == "timeout" and len(arguments) > 1:
            return self.command(arguments[1:])
        elif name == "seq":
            self.print("".join(f"{number}\n" for number in _sequence(arguments)))
        elif name == "expr":
            self.print(f"{self._arithmetic(' '.join(arguments))}\n")
        elif name == "hostname":
            self.print(f"{self.variables.get('HOSTNAME', 'localhost')}\n")
        elif name in SHELLS and "-c" in arguments[:-1]:
            return self._nested(arguments[arguments.index("-c") + 1])
        elif name == "cat" and self.stdin:
            self.print(self.stdin)
        elif name == "tail" and any(text.startswith("-") and "f" in text for text in arguments):
            raise EndlessError
        elif name in QUICK or (name in ("python", "python3") and "-c" in arguments):
            self.sleep(QUICK.get(name, 0.2))
        elif not self._unknown_ends:
            raise EndlessError
        return 0

    def _builtin(self, name: str, arguments: Sequence[str]) -> None:
        if name == "date":
            self.print(f"{self.run.seconds:.0f}\n" if "+%s" in arguments else "Thu Jan  1 00:00:00 UTC 1970\n")
        elif name == "export":
            for text in arguments:
                key, sign, value = text.partition("=")
                if sign:
                    self.variables[key] = value

    def _nested(self, script: str) -> int:
        try:
            return _Parser(_tokens(script)).script()(self)
        except _ExitError as ended:
            return ended.code

    def _test(self, words: list[str]) -> bool:
        if words and words[0] == "!":
            return not self._test(words[1:])
        if len(words) == 3:
            left, operator, right = words
            if operator in ("=", "=="):
                return left == right
            if operator == "!=":
                return left != right
            try:
                one, other = int(left), int(right)
            except ValueError:
                return False
            return {
                "-eq": one == other,
                "-ne": one != other,
                "-lt": one < other,
                "-le": one <= other,
                "-gt": one > other,
                "-ge": one >= other,
            }.get(operator, False)
        if len(words) == 2:
            return {"-n": bool(words[1]), "-z": not words[1]}.get(words[0], False)
        return len(words) == 1 and bool(words[0])


def _head(word: _Word) -> str:
    text, quoted = word.pieces[0]
    return "" if quoted else text


def _real(text: str) -> str:
    return text.replace("\0", "$").replace("\1", "`")


def _echo(arguments: list[str]) -> str:
    end = "\n"
    while arguments and arguments[0] in ("-n", "-e", "-ne", "-en"):
        if "n" in arguments.pop(0):
            end = ""
    return " ".join(arguments) + end


def _printf(arguments: list[str]) -> str:
    if not arguments:
        return ""
    values = arguments[1:]

    def fill(matched: re.Match[str]) -> str:
        if matched[0] == "%%":
            return "%"
        return values.pop(0) if values else ""

    text = re.sub(r"%(?:%|[-\d.]*[sdi])", fill, arguments[0])
    return text.replace("\\n", "\n").replace("\\t", "\t")


def _duration(text: str) -> float:
    if text == "infinity":
        raise EndlessError
    matched = _DURATION.fullmatch(text)
    return float(matched[1]) * _UNITS[matched[2]] if matched is not None else 0.0


def _sequence(arguments: Sequence[str]) -> range:
    try:
        numbers = [int(text) for text in arguments]
    except ValueError:
        return range(0)
    if len(numbers) == 1:
        return range(1, numbers[0] + 1)
    if len(numbers) == 2:
        return range(numbers[0], numbers[1] + 1)
    if len(numbers) == 3 and numbers[1]:
        step = numbers[1]
        return range(numbers[0], numbers[2] + (1 if step > 0 else -1), step)
    return range(0)


def execute(argv: Sequence[str], variables: Mapping[str, str], run: Run, *, unknown_ends: bool = False) -> int:
    """Run a command line to its end and return the exit code. Raises `EndlessError`; `run` has what came before."""
    shell = _Shell(run, variables, unknown_ends)
    try:
        return shell.command(argv)
    except _ExitError as ended:
        return ended.code
    except (_UnclearError, RecursionError, IndexError):
        if unknown_ends:
            return 0
        raise EndlessError from None
    except _LoopError:
        return 0
    finally:
        shell.finish()
