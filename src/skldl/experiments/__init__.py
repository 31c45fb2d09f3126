"""Comparisons of estimators: studies, their records, tables and statistics.

`run_study` runs a `Study`; the command line calls it as ``skldl bench``.
"""

from skldl.experiments.results import StudyResults
from skldl.experiments.run import Plan, Progress, plan_study, run_study
from skldl.experiments.study import DatasetSpec, Study
from skldl.experiments.study_file import builtin_studies, dump_study, load_study
from skldl.selection import PROTOCOLS, Candidate

__all__ = [
    "PROTOCOLS",
    "Candidate",
    "DatasetSpec",
    "Plan",
    "Progress",
    "Study",
    "StudyResults",
    "builtin_studies",
    "dump_study",
    "load_study",
    "plan_study",
    "run_study",
]
