"""Run every benchmark and write the tables and the history (`make bench`).

    python benchmarks/run.py                                   # all parts, one after the other (hours)
    python benchmarks/run.py accuracy SJAFFE:10 --models auto  # one part, with its options
    python benchmarks/run.py tables                            # only the tables, from the results that are there

The peers (python-ldl 0.1.2, torch 2.13.0) have an environment of their own, ``.venv-peers``, made here. The part
``accuracy`` has no peers there: it runs in the environment of this script, and docs/make_accuracy.py makes its page.
"""

import json
import os
import subprocess
import sys
import venv
from pathlib import Path

import skldl

HERE = Path(__file__).parent
ROOT = HERE.parent
PEERS = ROOT / ".venv-peers"
PEER_PACKAGES = ["torch==2.13.0", "python-ldl==0.1.2"]
TITLES = {
    "sabfgs": "SABFGS: time to the optimum",
    "sparse_text": "SABFGS on sparse text features, 6,000 rows, three labels, alpha = 1/n",
    "saiis": "SAIIS: time per iteration",
    "aaknn": "AAKNN: prediction",
    "ptbayes": "PTBayes: fit and prediction",
    "aabp": "AABP: fit and prediction",
    "ptsvm": "PTSVM: fit and prediction",
    "ptsvm_solver": "PTSVM: its solver against LIBSVM, pair by pair",
    "after2016": "Algorithms after 2016: fit and prediction",
    "scaling": "Growth with the number of rows (seconds)",
}


WITH_PEERS = ("speed", "after2016", "scaling", "measures")
PARTS = (*WITH_PEERS, "accuracy", "tables")


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
    from history import write

    if path := write(skldl.__version__):
        print(f"History: {path}; compare it with: python benchmarks/history.py compare")


def main() -> None:
    part, *options = sys.argv[1:] or [""]
    if part not in ("", *PARTS):
        sys.exit(f"There is no part {part!r} of the benchmarks. Known: {', '.join(PARTS)}; without one, all run.")
    one_thread = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    environment = {**os.environ, **one_thread, "KERAS_BACKEND": "torch"}
    environment.pop("PYTHONPATH", None)
    for name in [part] if part else PARTS:
        if name != "tables":
            python = peers_python() if name in WITH_PEERS else sys.executable
            subprocess.run([python, str(HERE / f"{name}.py"), *options], check=True, env=environment)
    write_tables()


if __name__ == "__main__":
    main()
