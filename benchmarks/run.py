"""Run every benchmark and write the tables: what `make bench` calls.

The peers (python-ldl 0.1.2, torch 2.13.0) live in an environment of their own, ``.venv-peers``, made here.
"""

import json
import os
import subprocess
import sys
import venv
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent
PEERS = ROOT / ".venv-peers"
PEER_PACKAGES = ["torch==2.13.0", "python-ldl==0.1.2"]
TITLES = {
    "sabfgs": "SABFGS: time to the optimum",
    "saiis": "SAIIS: time per iteration",
    "aaknn": "AAKNN: prediction",
    "ptbayes": "PTBayes: fit and prediction",
    "aabp": "AABP: fit and prediction",
    "ptsvm": "PTSVM: fit and prediction",
    "scaling": "Growth with the number of rows (seconds)",
}


def peers_python() -> str:
    python = PEERS / "bin" / "python"
    done = PEERS / ".complete"
    wanted = "\n".join(PEER_PACKAGES)
    if not done.exists() or done.read_text() != wanted:
        print("Making the environment .venv-peers with torch and python-ldl (some minutes)", flush=True)
        venv.create(PEERS, with_pip=True)
        pip = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        for package in PEER_PACKAGES:  # torch first, so that python-ldl finds it there
            subprocess.run([*pip, package], check=True)
        subprocess.run([*pip, "-e", f"{ROOT}[plot]"], check=True)
        done.write_text(wanted)
    return str(python)


def write_tables() -> None:
    sys.path.insert(0, str(HERE))
    from _common import RESULTS, markdown

    parts = [
        "# Benchmarks",
        "",
        "Made by `make bench`. Times are medians of CPU seconds on one core. Where another package's time is divided "
        "by ours, a ratio above 1 means that we are faster; KL is the mean Kullback-Leibler divergence on the test "
        "fold.",
    ]
    for section, title in TITLES.items():
        path = RESULTS / f"{section}.json"
        if not path.exists():
            continue
        content = json.loads(path.read_text())
        parts += ["", f"## {title}", "", markdown(content["rows"]), ""]
        parts.append(", ".join(f"{key} {value}" for key, value in content["machine"].items()))
    (RESULTS / "README.md").write_text("\n".join(parts) + "\n")
    print(f"Tables: {RESULTS / 'README.md'}")


def main() -> None:
    arguments = sys.argv[1:]
    python = peers_python()
    one_thread = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    environment = {**os.environ, **one_thread, "KERAS_BACKEND": "torch"}
    environment.pop("PYTHONPATH", None)
    subprocess.run([python, str(HERE / "speed.py"), *arguments], check=True, env=environment)
    if not arguments:
        subprocess.run([python, str(HERE / "scaling.py")], check=True, env=environment)
        subprocess.run([python, str(HERE / "measures.py")], check=True, env=environment)
        subprocess.run([python, str(HERE / "after2016.py")], check=True, env=environment)
    write_tables()


if __name__ == "__main__":
    main()
