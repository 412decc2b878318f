"""The rules of the house that a machine can check."""

from __future__ import annotations

import ast
import importlib.util
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from rookery.cli.examples import EXAMPLES

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "rookery"
LONGEST_MODULE = 400

# Composed of parts, so that this file does not name them.
REGISTRIES = [
    "py" + "pi.org",
    "python" + "hosted.org",
    "repo.maven" + ".apache.org",
    "repo1.maven" + ".org",
    "maven" + "-central.storage",
    "ana" + "conda.org",
    "registry.npm" + "js.org",
]


def _generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate_docs", ROOT / "tools" / "generate_docs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


class TestCommandPages:
    def test_up_to_date(self) -> None:
        ran = subprocess.run(
            [sys.executable, ROOT / "tools" / "generate_docs.py", "--check"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert (ran.returncode, ran.stderr) == (0, "")

    def test_every_command_has_its_page(self) -> None:
        names = [page.name for page in _generator().pages()]
        assert {"doctor", "puffin-inspect", "puffin-cat", "puffin-verify", "puffin-copy"} <= set(names)
        assert [name for name in names if not (ROOT / "docs" / "commands" / f"{name}.md").exists()] == []

    def test_every_command_has_examples_and_no_other(self) -> None:
        assert {" ".join(page.words) for page in _generator().pages()} == EXAMPLES.keys()

    def test_stale_missing_and_left_over_pages_are_found(self, tmp_path: Path) -> None:
        generator = _generator()
        assert generator.main(["--folder", str(tmp_path)]) == 0
        assert generator.main(["--folder", str(tmp_path), "--check"]) == 0
        (tmp_path / "doctor.md").write_text("out of date")
        (tmp_path / "puffin-cat.md").unlink()
        (tmp_path / "gone.md").write_text("of a command that was taken away")
        stale = [path.name for path in generator.stale(tmp_path)]
        assert stale == ["doctor.md", "gone.md", "puffin-cat.md"]
        assert generator.main(["--folder", str(tmp_path), "--check"]) == 1
        assert generator.main(["--folder", str(tmp_path)]) == 0
        assert generator.main(["--folder", str(tmp_path), "--check"]) == 0
        page = (tmp_path / "puffin-copy.md").read_text()
        assert page.endswith(f"## Examples\n\n    {EXAMPLES['puffin copy'][0]}\n")


def test_no_module_is_too_long() -> None:
    lengths = {
        str(path.relative_to(SOURCE)): len(path.read_text().splitlines()) for path in SOURCE.rglob("*.py")
    }
    assert lengths
    assert {name: length for name, length in lengths.items() if length > LONGEST_MODULE} == {}


def _is_import(node: ast.stmt) -> bool:
    return isinstance(node, ast.Import | ast.ImportFrom)


def _belongs_in_init(node: ast.stmt) -> bool:
    """Docstring, imports (also for type checkers only), `__all__`, and what a lazy `__getattr__` needs."""
    match node:
        case ast.Import() | ast.ImportFrom():
            return True
        case ast.Expr(value=ast.Constant(value=str())):
            return True
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.List() | ast.Tuple() | ast.Dict()):
            return name == "__all__" or name.startswith("_LAZY")
        case ast.If(test=ast.Name(id="TYPE_CHECKING"), body=body, orelse=[]):
            return all(map(_is_import, body))
        case ast.FunctionDef(name=name):
            return name in ("__getattr__", "__dir__")
    return False


def test_init_files_only_re_export() -> None:
    strangers = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in SOURCE.rglob("__init__.py")
        for node in ast.parse(path.read_text()).body
        if not _belongs_in_init(node)
    ]
    assert strangers == []


@pytest.mark.parametrize("code", ["x = 1", "def f(): ...", "class A: ...", "if x:\n    import y", "print()"])
def test_init_rule_can_fail(code: str) -> None:
    assert not all(map(_belongs_in_init, ast.parse(code).body))


def _files() -> Iterator[Path]:
    """Every file that is kept: tracked or about to be; without git, all that is not ignored."""
    git = shutil.which("git")
    if git and (ROOT / ".git").exists():
        listed = subprocess.run(
            [git, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        candidates = [ROOT / name for name in listed.split("\0") if name]
    else:
        ignored = {line.strip("/") for line in (ROOT / ".gitignore").read_text().split()}
        candidates = [path for path in ROOT.rglob("*") if not ignored & set(path.relative_to(ROOT).parts)]
    return (path for path in candidates if path.is_file())


def test_no_file_names_a_package_registry() -> None:
    forbidden = re.compile("|".join(map(re.escape, REGISTRIES)).encode(), re.I)
    files = list(_files())
    assert ROOT / "pyproject.toml" in files
    assert [str(path.relative_to(ROOT)) for path in files if forbidden.search(path.read_bytes())] == []


def test_lock_pins_and_hashes_everything() -> None:
    text = (ROOT / "requirements.lock").read_text()
    joined = re.sub(r"\\\n\s*", "", text)
    requirements = [line for line in joined.splitlines() if line and not line.lstrip().startswith("#")]
    assert len(requirements) > 50
    assert [line for line in requirements if not re.match(r"[A-Za-z0-9._-]+(\[[\w,-]+\])?==\S+", line)] == []
    assert [line for line in requirements if not re.search(r"--hash=sha256:[0-9a-f]{64}\b", line)] == []


def test_lock_names_no_index() -> None:
    text = (ROOT / "requirements.lock").read_text()
    options = r"^\s*(-i|-f|--index-url|--extra-index-url|--find-links|--no-index|--trusted-host)\b"
    assert re.findall(options, text, re.M) == []
    assert re.findall(r"\S+ @ \S+|https?://\S+", text) == []
