"""The notebooks run, and are committed as they ran."""

import os
from pathlib import Path

import pytest
from test_guide import alike

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")

FOLDER = Path(__file__).parents[2] / "docs" / "guide" / "notebooks"
DATASETS = Path(os.environ.get("LATENS_DATASETS", FOLDER / "../../../../shared/datasets"))
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def test_there_are_three():
    assert [path.stem for path in NOTEBOOKS] == ["neuron", "positioning", "your-own-csv"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs(path, tmp_path, monkeypatch):
    if path.stem == "positioning":
        if not (DATASETS / "emps").is_dir():
            pytest.skip(f"{DATASETS / 'emps'} is missing: set LATENS_DATASETS")
        monkeypatch.setenv("LATENS_DATASETS", str(DATASETS.resolve()))
    notebook = nbformat.read(path, as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.execution_count for cell in code), "committed without outputs"
    assert path.stat().st_size < 400_000
    said = printed(notebook)
    where = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3", resources=where).execute()
    for before, now in zip(said, printed(notebook), strict=True):
        assert alike(before, now), now
    pictures = [o for cell in code for o in cell.outputs if "image/png" in o.get("data", {})]
    assert len(pictures) >= 3


def printed(notebook):
    """What each cell prints, which comes in any number of pieces."""
    cells = [cell.get("outputs", []) for cell in notebook.cells]
    return ["".join(o.text for o in outputs if o.get("name") == "stdout") for outputs in cells]
