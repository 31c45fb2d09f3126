# The names of this package for type checkers; written by make docs.
from skldl import annotators as annotators
from skldl import data as data
from skldl import distributions as distributions
from skldl import exceptions as exceptions
from skldl import experiments as experiments
from skldl import metrics as metrics
from skldl import names as names
from skldl import plots as plots
from skldl import selection as selection
from skldl import simplex as simplex
from skldl import tabular as tabular
from skldl import testing as testing
from skldl import uncertainty as uncertainty
from skldl._versions import show_versions as show_versions
from skldl.adaptation._aaregressor import AARegressor as AARegressor
from skldl.base import BaseLDL as BaseLDL
from skldl.baseline import MeanDistribution as MeanDistribution
from skldl.classification import LDLClassifier as LDLClassifier
from skldl.ensemble._auto import AutoLDL as AutoLDL
from skldl.ensemble._stacking import StackingLDL as StackingLDL
from skldl.kernel._kernelridge import KernelRidgeLDL as KernelRidgeLDL
from skldl.maxent._sabfgs import SABFGS as SABFGS
from skldl.maxent._sabfgscv import SABFGSCV as SABFGSCV
from skldl.maxent._saiis import SAIIS as SAIIS
from skldl.neighbors._aaknn import AAKNN as AAKNN
from skldl.neighbors._aaknncv import AAKNNCV as AAKNNCV
from skldl.neural._aabp import AABP as AABP
from skldl.persistence import load as load
from skldl.persistence import save as save
from skldl.transformation._ptbayes import PTBayes as PTBayes
from skldl.transformation._ptclassifier import PTClassifier as PTClassifier
from skldl.transformation._ptsvm import PTSVM as PTSVM
from skldl.trees._boosting import GradientBoostingLDL as GradientBoostingLDL
from skldl.trees._forest import RandomForestLDL as RandomForestLDL

ESTIMATORS: tuple[str, ...]
__version__: str

def __dir__() -> list[str]: ...
