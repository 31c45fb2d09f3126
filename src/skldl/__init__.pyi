# The names of this package for type checkers; written by make docs.
from skldl import annotators as annotators
from skldl import chunks as chunks
from skldl import data as data
from skldl import distributions as distributions
from skldl import enhancement as enhancement
from skldl import exceptions as exceptions
from skldl import experiments as experiments
from skldl import incomplete as incomplete
from skldl import metrics as metrics
from skldl import names as names
from skldl import plots as plots
from skldl import selection as selection
from skldl import simplex as simplex
from skldl import tabular as tabular
from skldl import testing as testing
from skldl import uncertainty as uncertainty
from skldl.adaptation._aaregressor import AARegressor as AARegressor
from skldl.base import BaseLDL as BaseLDL
from skldl.baseline import MeanDistribution as MeanDistribution
from skldl.classification import LDLClassifier as LDLClassifier
from skldl.correlation._bdldl import BDLDL as BDLDL
from skldl.correlation._ldldpa import LDLDPA as LDLDPA
from skldl.correlation._ldlhvlc import LDLHVLC as LDLHVLC
from skldl.correlation._ldllc import LDLLC as LDLLC
from skldl.correlation._ldlldm import LDLLDM as LDLLDM
from skldl.correlation._ldllrr import LDLLRR as LDLLRR
from skldl.correlation._ldlscl import LDLSCL as LDLSCL
from skldl.decision._ldl4c import LDL4C as LDL4C
from skldl.decision._ldlhr import LDLHR as LDLHR
from skldl.decision._ldlm import LDLM as LDLM
from skldl.ensemble._auto import AutoLDL as AutoLDL
from skldl.ensemble._stacking import StackingLDL as StackingLDL
from skldl.incomplete._incomldl import IncomLDL as IncomLDL
from skldl.incomplete._winldl import WInLDL as WInLDL
from skldl.kernel._kernelridge import KernelRidgeLDL as KernelRidgeLDL
from skldl.kernel._ldsvr import LDSVR as LDSVR
from skldl.losses._dirichletldl import DirichletLDL as DirichletLDL
from skldl.losses._smoothlossldl import SmoothLossLDL as SmoothLossLDL
from skldl.maxent._sabfgs import SABFGS as SABFGS
from skldl.maxent._sabfgscv import SABFGSCV as SABFGSCV
from skldl.maxent._saiis import SAIIS as SAIIS
from skldl.neighbors._aaknn import AAKNN as AAKNN
from skldl.neighbors._aaknncv import AAKNNCV as AAKNNCV
from skldl.neural._aabp import AABP as AABP
from skldl.neural._cpnn import CPNN as CPNN
from skldl.persistence import load as load
from skldl.persistence import save as save
from skldl.transformation._ptbayes import PTBayes as PTBayes
from skldl.transformation._ptclassifier import PTClassifier as PTClassifier
from skldl.transformation._ptsvm import PTSVM as PTSVM
from skldl.trees._boosting import GradientBoostingLDL as GradientBoostingLDL
from skldl.trees._forest import RandomForestLDL as RandomForestLDL
from skldl.trees._ldlf import LDLF as LDLF
from skldl.trees._ldlogitboost import LDLogitBoost as LDLogitBoost
from skldl.trees._structrf import StructRF as StructRF
from skldl.uncertainty._calibrated import CalibratedLDL as CalibratedLDL
from skldl.uncertainty._conformal import ConformalLDL as ConformalLDL
from skldl.uncertainty._spread import DirichletSpread as DirichletSpread
from skldl.utils.dependencies import show_versions as show_versions

ESTIMATORS: tuple[str, ...]
__version__: str

def __dir__() -> list[str]: ...
