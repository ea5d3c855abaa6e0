"""Small trees with one mistake each, for the tests of the checks."""
import contextlib
import io
import pathlib
import subprocess
import tempfile
import unittest

from tree import floors, sources_of

TABLE = """
| floor | library | what | third parties allowed |
|---|---|---|---|
| 0 | `common/base` | errors | std, fmt |
| 1 | `common/net` | sockets | Asio |
| 1 | `common/tensor` | shapes | - |
"""


class PlantedTest(unittest.TestCase):
    @contextlib.contextmanager
    def tree(self, files):
        """A folder with `files` and a table of floors; lines that are printed meanwhile go nowhere."""
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            root = pathlib.Path(folder)
            for name, text in {"common/README.md": TABLE, **files}.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            yield root

    def found(self, check, files, *arguments, **named):
        """The problems that check(root, sources, ...) finds in a tree of `files`."""
        with self.tree(files) as root:
            return list(check(root, sources_of(root), *arguments, **named))

    def found_with_table(self, check, files, **named):
        with self.tree(files) as root:
            return list(check(root, sources_of(root), floors(root / "common/README.md"), **named))

    def assert_found(self, text, found):
        self.assertTrue(any(text in each for each in found), found)

    def git(self, root, *arguments):
        done = subprocess.run(["git", "-C", str(root), "-c", "user.name=a", "-c", "user.email=a@b", *arguments], check=True,
                              capture_output=True, text=True)
        return done.stdout.strip()

    def commit(self, root, subject):
        self.git(root, "init", "-q")
        self.git(root, "add", "-A")
        self.git(root, "commit", "-q", "--allow-empty", "-m", subject)
        return self.git(root, "rev-parse", "HEAD")
