"""Label enhancement: from logical labels (0 or 1) and features to label distributions.

All are transformers: ``fit_transform(X, L)`` returns the distributions of the rows. Some have ``transform(X, L)`` for
new rows; only `KM` needs L there. L has any form that `skldl.distributions.from_label_sets` accepts.

======================  ================================================================  ===================
enhancer                idea                                                              new rows
======================  ================================================================  ===================
`FCM`                   memberships of fuzzy clusters, and their frequencies of labels    transform(X)
`KM`                    distance to the centre of each label in a kernel's space          transform(X, L)
`PropagationEnhancer`   labels spread over a graph of neighbours                          transform(X)
`ML`                    degrees follow the manifold of the features                       no
`GLLE`                  near L, smooth over a graph of neighbours                         transform(X)
`LESC`                  near L, and reconstructed as the features are, with low rank      no
======================  ================================================================  ===================

`EnhancedLDL` removes the degrees of a table and enhances its logical labels, for studies of the value of enhancement.
"""

from skldl.distributions import PropagationEnhancer
from skldl.enhancement._enhancedldl import EnhancedLDL
from skldl.enhancement._fcm import FCM
from skldl.enhancement._glle import GLLE
from skldl.enhancement._km import KM
from skldl.enhancement._lesc import LESC
from skldl.enhancement._ml import ML

__all__ = ["FCM", "GLLE", "KM", "LESC", "ML", "EnhancedLDL", "PropagationEnhancer"]
