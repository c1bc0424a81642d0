"""numba's ``njit`` and ``cfunc``, with a cache on disk that costs a compilation when it fails, and
never a result.

numba's own cache looks at the file of a function, not at the files of the functions that it calls;
damaged files end in a traceback, and so do folders that cannot be written; and two processes that
compile a function for different arguments at once may each find the other's code under their own
key. Here

- the stamp of a compiled function is a hash of every source that its code can come from,
- what cannot be read is compiled again and written anew, with one warning,
- where nothing can be written, a process goes on without a cache, with one warning,
- every entry holds the key under which it was written, and is taken for no other one,
- no two processes give functions one symbol, where the first that is loaded stands in for all.

What is compiled from the package's own files stands beside them where that can be written.
Generated code stands in `cache_folder`: a module's name tells its text, so no source file is
needed, or trusted.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import re
import secrets
import sys
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numba
from numba.core import sigutils
from numba.core.bytecode import FunctionIdentity
from numba.core.caching import (
    CompileResultCacheImpl,
    FunctionCache,
    IndexDataCacheFile,
    InTreeCacheLocator,
    NullCache,
    UserProvidedCacheLocator,
)
from numba.core.ccallback import CFunc
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import PassManager
from numba.core.errors import NumbaError
from numba.core.registry import CPUDispatcher
from numba.core.runtime import rtsys
from numba.core.typed_passes import (
    AnnotateTypes,
    IRLegalization,
    NativeLowering,
    NoPythonBackend,
    NopythonTypeInference,
)
from numba.core.types.misc import unliteral
from numba.core.untyped_passes import FixupArgs, IRProcessing, TranslateByteCode

from fluidcc.base.errors import warn
from fluidcc.base.progress import patiently

_PACKAGE = Path(__file__).parent
_GENERATED = "__fluidcc_generated__"  # marks the modules that `load_text` makes


def cache_folder() -> Path:
    """Folder of compiled generated code: ``FLUIDCC_CACHE_DIR``, or ``fluidcc`` in the user's
    cache folder.
    """
    given = os.environ.get("FLUIDCC_CACHE_DIR")
    if given:
        return Path(given)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "fluidcc"


@lru_cache(maxsize=16)
def source_hash(folder: str = "") -> str:
    """Return the hash of the sources in a folder of `fluidcc.numerics` and of the files that all
    its folders share.
    """
    digest = hashlib.sha256()
    for path in sorted({*_PACKAGE.glob("*.py"), *(_PACKAGE / folder).glob("*.py")}):
        digest.update(path.relative_to(_PACKAGE).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


# --- what is compiled ---------------------------------------------------------------------------


class _Entry(CPUDispatcher):
    """A function that Python calls."""

    def compile(self, sig: Any) -> Any:
        with patiently(f"compiling {_task(self.py_func)}, once"):
            return super().compile(sig)


class _Inner(CPUDispatcher):
    """A function that compiled code alone calls."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(f"{self.py_func.__name__} is called by compiled code alone")


class _Text(JITCodeLibrary):
    """What a function that compiled code alone calls becomes: text for LLVM, which its caller
    takes in.

    numba by itself makes machine code of each function together with all that it calls, so that
    what stands deep is optimised again for every level above it. That took more than half of the
    time of compiling.
    """

    def finalize(self) -> None:
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        return 0  # nowhere: there is no machine code

    @property
    def codegen(self) -> Any:
        return self

    def set_env(self, name: str, env: Any) -> None:
        """Nothing to tell code that is not there."""


class _ToText(Compiler):
    """numba's compiler, into `_Text`."""

    def __init__(self, typing: Any, target: Any, _library: Any, *rest: Any) -> None:
        super().__init__(typing, target, _Text(target.codegen(), "inner"), *rest)


def njit(
    *signature: Any,
    entry: bool = False,
    counted: bool = True,
    literal: bool = False,
    cache: bool = True,
    **options: Any,
) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function as ``numba.njit`` does, with NumPy's division, without holding the
    interpreter's lock, and cached as this module says.

    Parameters
    ----------
    entry : bool
        Whether Python calls it. All others raise TypeError: they have no machine code of their own,
        are compiled within their callers, and are not kept on disk.
    counted : bool
        Whether numba counts who holds an array, by an atomic operation whenever one is passed on or
        taken out of a tuple. Where arrays belong to the caller throughout, that is all for nothing;
        it took a quarter of the time of searches for equilibria and margins. A function compiled
        without it cannot make an array (numba refuses to compile it), and must not return one.
    literal : bool
        Between compiled functions numba takes a constant argument for a type of its own: ``f(x,
        0)`` and ``f(x, 1)`` are compiled apart, and so is all that calls them. Here a function is
        compiled once for all whole numbers, unless it is inlined by force or asks for more by this.
    """
    options = {"error_model": "numpy", "nogil": True, **options}

    def compiled(function: Callable[..., Any]) -> Any:
        if numba.config.DISABLE_JIT:
            return numba.njit(**options)(function)
        if not entry:
            options.update(no_cpython_wrapper=True, no_cfunc_wrapper=True, pipeline_class=_ToText)
        made = numba.njit(_nrt=counted, **options)(function)
        made.__class__ = _Entry if entry else _Inner
        if entry and cache:
            made._cache = _cache_of(function)
        if not (literal or options.get("forceinline")):
            resolve = made.get_call_template

            def of_types(args: tuple[Any, ...], kws: dict[str, Any]) -> Any:
                return resolve(
                    tuple(map(unliteral, args)),
                    {name: unliteral(kind) for name, kind in kws.items()},
                )

            made.get_call_template = of_types
        if signature:
            made.compile(*signature)
            made.disable_compile()
        return made

    return compiled


class _Scalar(Compiler):
    """numba's compiler of arithmetic on numbers alone, each name always of one type.

    By itself numba has a name for each assignment, goes through the whole function for each name
    that branches assign, and looks for closures, literals and constants: three quarters of the
    time of a law with many branches, for nothing, as LLVM does the same anew.
    """

    def define_pipelines(self) -> list[PassManager]:
        self.state.flags.enable_ssa = False
        made = PassManager("scalar")
        for one in (
            TranslateByteCode, FixupArgs, IRProcessing, NopythonTypeInference, IRLegalization,
            AnnotateTypes, NativeLowering, NoPythonBackend,
        ):  # fmt: skip
            made.add_pass(one, one.__name__)
        made.finalize()
        return [made]


def cfunc(
    signature: Any, *, scalar: bool = False, **options: Any
) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function as ``numba.cfunc`` does, cached as this module says.

    Parameters
    ----------
    scalar : bool
        Whether it is of arithmetic on numbers, and calls nothing but functions of ``math``.
    """
    pipeline = _Scalar if scalar else Compiler

    def compiled(function: Callable[..., Any]) -> Any:
        wanted = sigutils.normalize_signature(signature)
        made: Any = CFunc(function, wanted, {}, options, pipeline_class=pipeline)
        made._cache = _cache_of(function)
        with patiently(f"compiling {_task(function)}, once"):
            made.compile()
        return made

    return compiled


_TASKS = {
    "fluid": "the network solver",
    "steady": "the search for equilibria",
    "linear": "the stability analysis",
    "dde": "the delay solver",
}


def _task(function: Any) -> str:
    """What a function of the package, or one that was generated, is compiled for."""
    return _TASKS.get(_folder_of(function).partition("/")[0], "the equations")


def load_text(text: str, stem: str) -> ModuleType:
    """Return the module of a generated text, whose functions are compiled or taken from the cache.

    The text itself is run, whatever stands in the cache folder. It may be called from many threads.
    """
    name = generated_name(text, stem)
    with global_compiler_lock:
        if name not in _modules:
            module = ModuleType(name)
            module.__dict__[_GENERATED] = True
            sys.modules[name] = module  # where numba looks for it when it takes code from the cache
            module.__file__ = f"{name}.py"
            exec(compile(text, module.__file__, "exec"), module.__dict__)
            _modules[name] = module  # for good: addresses of its code are kept elsewhere
        return _modules[name]


_modules: dict[str, ModuleType] = {}


def is_generated(function: Any) -> bool:
    """Whether a Python function comes from `load_text`."""
    return _GENERATED in function.__globals__


def generated_name(text: str, stem: str) -> str:
    """Name of the module of a generated text, which tells its text."""
    return f"{stem}_{hashlib.sha256(text.encode()).hexdigest()[:20]}"


def report(error: NumbaError) -> list[str]:
    """Return the lines of what numba says, without the colours it has where colorama is
    installed.
    """
    plain = re.sub(r"\x1b\[[\d;]*m", "", str(error))
    return [line.strip() for line in plain.splitlines() if line.strip()]


# --- the cache on disk --------------------------------------------------------------------------


def _number_apart() -> None:
    """Number functions from anywhere on. numba's numbers, by which symbols of one name differ (as
    those within `np.sort` and `np.argsort`), begin at 1 in every process.
    """
    FunctionIdentity._unique_ids = itertools.count(secrets.randbits(62))


_number_apart()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_number_apart)


class _OwnFolder(UserProvidedCacheLocator):
    """The project's own cache folder; generated code has no file there."""

    def __init__(self, py_func: Any, py_file: str) -> None:
        self._lineno = py_func.__code__.co_firstlineno
        self._generated = is_generated(py_func)
        below = "" if self._generated else self.get_suitable_cache_subpath(py_file)
        self._cache_path = str(cache_folder() / below)

    def get_source_stamp(self) -> str:
        return ""  # `_Cache` has a better one

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> _OwnFolder:
        self = cls(py_func, py_file)
        self.ensure_cache_path()
        return self


class _Beside(CompileResultCacheImpl):
    """Of the package's functions: where ``NUMBA_CACHE_DIR`` says, or beside their files if
    possible.
    """

    _locator_classes = [UserProvidedCacheLocator, InTreeCacheLocator, _OwnFolder]  # noqa: RUF012


class _Apart(CompileResultCacheImpl):
    """Of generated functions."""

    _locator_classes = [_OwnFolder]  # noqa: RUF012


class _Entries(IndexDataCacheFile):
    """Entries that know what they are: of which function, from which sources, for which
    arguments.
    """

    def save(self, key: Any, data: Any) -> None:
        super().save(key, (self._name_of(key), data))

    def load(self, key: Any) -> Any:
        found = super().load(key)
        return found[1] if found is not None and found[0] == self._name_of(key) else None

    def _name_of(self, key: Any) -> tuple[Any, ...]:
        return self._index_name, self._source_stamp, key


class _Cache(FunctionCache):
    """The cache of a function of the package."""

    _impl_class = _Beside

    def __init__(self, py_func: Any, stamp: str) -> None:
        super().__init__(py_func)
        self._cache_file = _Entries(self._cache_path, self._impl.filename_base, stamp)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            # `super().load_overload` first imports all of numba that compiles: 0.6 s for nothing
            rtsys.initialize(target_context)
            with self._guard_against_spurious_io_errors():
                return self._load_overload(sig, target_context)
        except Exception as error:  # of whatever half a pickle, or another thing there, leads to
            self._kept(self.flush)
            if not isinstance(error, (AttributeError, ImportError)):  # names of another version's
                text = f"compiled code in {self._cache_path} is damaged ({_short(error)})"
                _say("damaged", f"{text}; it is compiled again, once")
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        self._kept(lambda: super(_Cache, self).save_overload(sig, data))

    def _kept(self, write: Callable[[], None]) -> None:
        try:
            write()
        except OSError as error:
            _say_unkept(error)


class _GeneratedCache(_Cache):
    """The cache of a generated function."""

    _impl_class = _Apart


def _cache_of(function: Any) -> Any:
    try:
        if is_generated(function):
            return _GeneratedCache(function, "")  # the name of its file is a hash already
        return _Cache(function, source_hash(_folder_of(function)))
    except (OSError, RuntimeError) as error:  # numba's own word for 'nowhere' is a RuntimeError
        _say_unkept(error)
        return NullCache()


def _folder_of(function: Any) -> str:
    folder = Path(function.__code__.co_filename).parent
    return str(folder.relative_to(_PACKAGE)) if folder.is_relative_to(_PACKAGE) else ""


def _say_unkept(error: Exception) -> None:
    text = (
        f"compiled code cannot be kept ({_short(error)}), so each process compiles anew what "
        f"it needs"
    )
    _say("unkept", f"{text}; set FLUIDCC_CACHE_DIR to a folder that can be written")


def _short(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__


_said: set[str] = set()


def _say(what: str, text: str) -> None:
    """Warn once in a process."""
    if what not in _said:
        _said.add(what)
        warn(text)
