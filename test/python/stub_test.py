"""The stubs say what the extension modules really hold: classes, methods, parameters, which of them have defaults."""

import ast
import importlib
import inspect
import pathlib
import re

import pytest

MODULES = ["hawser._hawser", "nixl._bindings"]


def parameters_of(arguments):
    """(name, has a default, kind) of each parameter of a function in a stub."""
    positional = arguments.posonlyargs + arguments.args
    first = len(positional) - len(arguments.defaults)
    found = [(one.arg, number >= first, "positional") for number, one in enumerate(positional)]
    if arguments.vararg:
        found.append((arguments.vararg.arg, False, "star"))
    found += [(one.arg, default is not None, "keyword") for one, default in zip(arguments.kwonlyargs, arguments.kw_defaults)]
    if arguments.kwarg:
        found.append((arguments.kwarg.arg, False, "stars"))
    return [(name, default, kind) for name, default, kind in found if name != "self"]


def overloads_in_stub(body):
    """Of a module's or a class's body: name -> set of signatures; None for what is no function."""
    found = {}
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if any(getattr(one, "id", "") == "property" for one in node.decorator_list):
                found[node.name] = None
            elif any(getattr(one, "attr", "") == "setter" for one in node.decorator_list):
                continue
            else:
                found.setdefault(node.name, []).append(parameters_of(node.args))
        elif isinstance(node, ast.ClassDef):
            found[node.name] = node
        elif isinstance(node, ast.AnnAssign) and getattr(node.annotation, "id", "") != "TypeAlias":
            found[node.target.id] = None
    return found


def overloads_at_run_time(function):
    function = getattr(function, "__wrapped__", function)
    signatures = getattr(function, "__nb_signature__", None)
    if signatures is None:
        text = re.sub(r"<[^>]*>", "...", str(inspect.signature(function)))
        text = re.sub(r"^\((agent|peer)\b", "(self", text)
        signatures = [(f"def f{re.sub(r'->.*', '', text)}", None)]
    found = []
    for signature in signatures:
        text = re.sub(r"\\\d+", "None", signature[0])  # A default value, given apart.
        text = text.replace("hawser._hawser.", "").replace("nixl._bindings.", "")
        text = re.sub(r"<[^>]*>", "None", text)
        tree = ast.parse(text.split("\n")[-1] + ": ...")
        found.append(parameters_of(tree.body[0].args))
    return without_shortcuts(found)


def without_shortcuts(overloads):
    """Less an overload without parameters where those of another all have defaults: the same call, only faster."""
    takes_none = any(one and all(has_default for _, has_default, _ in one) for one in overloads)
    return [one for one in overloads if one or not takes_none]


def own_names(thing):
    skip = {"__module__", "__doc__", "__new__", "__dict__", "__weakref__", "__file__", "__name__", "__loader__",
            "__package__", "__spec__", "__members__", "__nb_signature__"}
    return {name for name in vars(thing) if name not in skip}


def compare(where, names, thing, faults):
    missing = {name for name in own_names(thing) if not name.startswith("_") or name in names} - set(names)
    faults += [f"{where}.{name} is not in the stub" for name in sorted(missing)]
    for name, wanted in names.items():
        if name == "__buffer__":
            continue  # Before Python 3.12 a slot alone, without a name.
        real = getattr(thing, name, None)
        if not hasattr(thing, name):
            faults.append(f"{where}.{name} is in the stub only")
        elif isinstance(wanted, ast.ClassDef):
            if ast.unparse(wanted.bases[0] if wanted.bases else wanted) not in ("enum.IntEnum", "Exception"):
                compare(f"{where}.{name}", overloads_in_stub(wanted.body), real, faults)
        elif wanted is not None:
            got = overloads_at_run_time(real)
            if name.startswith("__") and name != "__init__":
                continue  # Their parameters have no names.
            if got != wanted:
                faults.append(f"{where}.{name}: the stub says {wanted}, it has {got}")


@pytest.mark.parametrize("name", MODULES)
def test_a_stub_matches_its_module(name):
    module = importlib.import_module(name)
    package = importlib.import_module(name.split(".")[0])
    stub = pathlib.Path(package.__file__).parent / f"{name.split('.')[-1]}.pyi"
    faults = []
    compare(name, overloads_in_stub(ast.parse(stub.read_text()).body), module, faults)
    assert not faults, "\n".join(faults)
    assert (stub.parent / "py.typed").exists()
