"""The adapters load no foreign package before they are called, and most not even then."""

from __future__ import annotations

import subprocess
import sys

FOREIGN = ("sklearn", "torch", "transformers", "onnx", "onnxruntime", "mlflow", "lightgbm", "pandas")
NAMES = ("from_sklearn", "from_transformers", "from_torch", "from_onnx", "read_payloads")
SHOW = f"\nimport sys\nprint(*(name for name in {FOREIGN!r} if name in sys.modules))"


def loaded_after(code: str) -> set[str]:
    done = subprocess.run([sys.executable, "-c", code + SHOW], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_names_are_lazy() -> None:
    assert loaded_after(f"import leadline\nfor name in {NAMES!r}: getattr(leadline, name)") == set()
    assert loaded_after("import leadline.integrations.mlflow") == set()


def test_the_check_can_fail() -> None:
    assert "torch" in loaded_after("import torch")


def test_duck_typing_needs_no_package() -> None:
    code = (
        "import leadline as ll\nfrom types import SimpleNamespace as S\n"
        "print(len(ll.from_transformers(S(predictions=[[1.0, 2.0]], label_ids=None))), file=__import__('sys').stderr)"
    )
    assert loaded_after(code) == set()
