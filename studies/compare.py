"""Compare a study with the tables and claims of Geng (2016): ``python studies/compare.py FOLDER ...``.

For each folder of a study, such as ``studies/tkde2016`` or the one that ``skldl bench --out`` wrote, it reads the
records and writes ``published.md`` and ``published.csv``, our numbers side by side with the published ones, and
``claims.md``, the claims of the paper, checked. Claims about time are added to ``tables/time.md``, and the new files to
the list in ``README.md``; both are written anew from the records, so that running it twice changes nothing.
"""

import argparse
import csv
import io
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from comparison.claims import check_claims, claims_text
from comparison.published import agreement_text, published_frame
from comparison.time_claims import RULE as TIME_RULE
from comparison.time_claims import check_time_claims
from skldl.exceptions import RecordsError
from skldl.experiments import StudyResults
from skldl.experiments.outputs import overview_text
from skldl.experiments.tables import interval_table, time_table
from skldl.utils.files import whole_file


def comparison_texts(results: StudyResults) -> dict[str, str]:
    """The files of the comparison, from the name of each to its text; empty if the paper has none of the cells."""
    lines = published_frame(results)
    if not lines:
        return {}
    texts = {"published.md": agreement_text(results), "published.csv": _csv(lines)}
    listed = "| `published.md`, `.csv` | side by side with the published numbers |\n"
    if verdicts := check_claims(results):
        texts["claims.md"] = claims_text(verdicts)
        listed += "| `claims.md` | claims of the paper, checked |\n"
        about_time = [f"- {v.claim} **{v.verdict}.** {v.evidence}\n" for v in check_time_claims(results)]
        heading = f"\nClaims of the paper about time. {TIME_RULE}\n\n"
        texts["tables/time.md"] = time_table(results).to_markdown() + heading + "".join(about_time)
    overview = overview_text(results, has_intervals=interval_table(results) is not None)
    return {"README.md": overview + listed, **texts}


def write_comparison(results: StudyResults, folder: Path) -> list[Path]:
    """Write the comparison into the folder of a study; the same records give the same bytes."""
    texts = comparison_texts(results)
    for name, text in texts.items():
        (folder / name).parent.mkdir(exist_ok=True)
        with whole_file(folder / name) as stream:
            stream.write(text.encode())
    return [folder / name for name in texts]


def _csv(lines: Sequence[dict[str, Any]]) -> str:
    stream = io.StringIO()
    writer = csv.DictWriter(stream, list(lines[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return stream.getvalue()


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare the studies in the folders that are named; 1 if one of them cannot be compared."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, usage="compare.py FOLDER ..."
    )
    parser.add_argument("folders", nargs="+", type=Path, help="folders with the records of a study")
    status = 0
    for folder in parser.parse_args(arguments).folders:
        try:
            paths = write_comparison(StudyResults.load(folder), folder)
        except RecordsError as error:
            print(f"Error: {error}", file=sys.stderr)
            status = 1
            continue
        if not paths:
            print(f"{folder}: the paper has none of the datasets, algorithms and measures of this study.")
            status = 1
        for path in paths:
            print(path)
    return status


if __name__ == "__main__":
    sys.exit(main())
