import ast

import pytest

from tests.integration.tiny import ROOT

PACKAGE = ROOT / "t2t_jax"
FILES = sorted(path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py"))

LONGEST_BODY = 40

# Formats in which data carry code, and ways to run a file as code.
FORBIDDEN_MODULES = {
    *("pickle", "_pickle", "cPickle", "dill", "cloudpickle", "joblib", "marshal"),
    *("shelve", "torch", "runpy", "imp", "code", "codeop"),
}
FORBIDDEN_CALLS = {
    *("eval", "exec", "compile", "__import__"),
    *("yaml.load", "yaml.unsafe_load", "yaml.full_load"),
    *("os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput"),
    "tempfile.mktemp",  # a name that another user may take first
}
# Whatever they are called on: archives write where their members say; the others run
# a file as code.
FORBIDDEN_METHODS = {
    *("extractall", "unpack_archive", "spec_from_file_location", "exec_module"),
    "load_module",
}
FORBIDDEN_NAMES = {"utils", "helpers", "common", "misc"}


def tree_of(path):
    return ast.parse((PACKAGE / path).read_text(encoding="utf-8"))


def imports_of(tree):
    """Lists the modules that a file imports, wherever in it: absolute names."""
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names += [f"{node.module}.{alias.name}" for alias in node.names]
            if node.level:
                names.append(f"relative import in line {node.lineno}")
    return names


def unsafe(tree):
    """Lists what could run code from data, and assertions."""
    imported = imports_of(tree)
    found = [name for name in imported if name.split(".")[0] in FORBIDDEN_MODULES]
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert):
            found.append(f"assert in line {node.lineno}")
        if isinstance(node, ast.Call):
            found += unsafe_call(node)
    return found


def unsafe_call(call):
    name = ast.unparse(call.func)
    last = name.rsplit(".", 1)[-1]
    if name in FORBIDDEN_CALLS or last in FORBIDDEN_METHODS:
        yield name
    if last == "import_module" and not is_of_ours(call.args[0]):
        yield f"{name} of what is not known"
    if name.startswith("subprocess.") and not isinstance(call.args[0], ast.List):
        yield f"{name} of a line, which a shell would read"
    for keyword in call.keywords:
        value = keyword.value
        is_false = isinstance(value, ast.Constant) and value.value is False
        if keyword.arg in ("allow_pickle", "shell") and not is_false:
            yield f"{name}({keyword.arg}=…)"


def is_of_ours(module):
    """Tells whether the name of a module begins with one that is to be trusted."""
    if ast.unparse(module) == "LAZY_EXPORTS[name]":  # the table of t2t_jax/__init__.py
        return True
    if isinstance(module, ast.JoinedStr):
        module = module.values[0]
    known = isinstance(module, ast.Constant) and isinstance(module.value, str)
    return known and module.value.startswith(("t2t_jax.", "tensorflow_datasets"))


def test_nothing_runs_code_from_data_and_nothing_is_asserted():
    found = {str(path): what for path in FILES if (what := unsafe(tree_of(path)))}
    # Only config files are code (SECURITY.md).
    assert found.pop("config_files.py") == ["runpy"]
    assert found == {}


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("import pickle", 1),
        ("eval('1')", 1),
        ("np.load(path, allow_pickle=True)", 1),
        ("np.load(path, allow_pickle=False)", 0),
        ("from joblib import load", 1),
        ("archive.extractall(place)", 1),
        ("importlib.import_module(name)", 1),
        ("import_module(f't2t_jax.cli.modes.{mode}')", 0),
        ("subprocess.run(line)", 1),
        ("subprocess.run([program, line])", 0),
        ("yaml.load(text)", 1),
        ("subprocess.run([line], shell=True)", 1),
        ("def f():\n  assert x", 1),
        ("re.compile('a'); jitted.lower(x).compile()", 0),
    ],
)
def test_the_rule_itself_is_as_it_is_meant(source, count):
    assert len(unsafe(ast.parse(source))) == count


def definitions(tree):
    """Yields every function and class, at whatever depth."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return (node for node in ast.walk(tree) if isinstance(node, kinds))


def code_lines(path):
    """Counts the lines of a file without docstrings, imports, comments and blanks."""
    lines = (PACKAGE / path).read_text(encoding="utf-8").splitlines()
    skipped = {n for n, line in enumerate(lines, 1) if line.strip()[:1] in ("", "#")}
    for node in ast.walk(tree_of(path)):
        value = node.value if isinstance(node, ast.Expr) else None
        is_string = isinstance(value, ast.Constant) and isinstance(value.value, str)
        if is_string or isinstance(node, ast.Import | ast.ImportFrom):
            skipped |= set(range(node.lineno, node.end_lineno + 1))
    return len(lines) - len(skipped)


def test_no_file_has_more_code_than_can_be_read_at_once():
    long = {str(path): count for path in FILES if (count := code_lines(path)) > 300}
    assert long == {}


def body_length(function):
    """Counts the lines of a function below its docstring."""
    body = function.body
    if ast.get_docstring(function) is not None:
        body = body[1:]
    return body[-1].end_lineno - body[0].lineno + 1 if body else 0


def test_a_function_is_short_enough_to_be_understood():
    long = {
        f"{path}: {node.name}": body_length(node)
        for path in FILES
        for node in definitions(tree_of(path))
        if not isinstance(node, ast.ClassDef) and body_length(node) > LONGEST_BODY
    }
    assert long == {}


def test_no_file_has_a_name_that_says_nothing():
    assert [path for path in FILES if path.stem in FORBIDDEN_NAMES] == []
