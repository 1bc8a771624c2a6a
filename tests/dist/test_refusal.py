"""`tools/dist.sh` removes nothing that it has not made."""

import subprocess
from pathlib import Path


def test_a_folder_with_other_files_is_refused(repository: Path, tmp_path: Path) -> None:
    kept = tmp_path / "letter.txt"
    kept.write_text("dear", encoding="utf-8")
    script = repository / "tools" / "dist.sh"
    done = subprocess.run(
        [script, "--output", tmp_path], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "empty it, or name another folder" in done.stderr
    assert kept.read_text(encoding="utf-8") == "dear"
