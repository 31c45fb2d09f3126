"""Label enhancement: from logical labels (0 or 1) and features to label distributions.

All are transformers: ``fit_transform(X, L)`` returns the distributions of the rows; those that have ``transform(X, L)``
give them for new rows, too, and all but `KM` can do so without L. L is whatever
`skldl.distributions.from_label_sets` takes.

======================  ================================================================  ===================
enhancer                idea                                                              new rows
======================  ================================================================  ===================
`FCM`                   memberships of fuzzy clusters, and how often these carry a label  transform(X)
`KM`                    distance to the centre of each label in a kernel's space          transform(X, L)
`PropagationEnhancer`   labels spread over a graph of neighbours                          transform(X)
`ML`                    degrees follow the manifold of the features                       no
`GLLE`                  near L, smooth over a graph of neighbours                         transform(X)
`LESC`                  near L, and reconstructed as the features are, with low rank      no
======================  ================================================================  ===================

`EnhancedLDL` hides the degrees of a table and enhances what is left, for studies of the value of enhancement.
"""

from skldl.distributions import PropagationEnhancer
from skldl.enhancement._enhancedldl import EnhancedLDL
from skldl.enhancement._fcm import FCM
from skldl.enhancement._glle import GLLE
from skldl.enhancement._km import KM
from skldl.enhancement._lesc import LESC
from skldl.enhancement._ml import ML

__all__ = ["FCM", "GLLE", "KM", "LESC", "ML", "EnhancedLDL", "PropagationEnhancer"]
