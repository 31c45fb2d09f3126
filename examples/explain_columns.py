"""
Which columns of my table change which labels?
==============================================

A hotel has a table of its guests and, for each, the shares of four kinds of comment: praise for the staff, for the
room, complaints about noise, complaints about the price. Which columns matter, and for which kind?

The data are simulated: a table of 600 guests with numbers, a category, a yes-or-no column, and two columns that have
no effect; the shares are a softmax of a linear function of the others, plus noise.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.special import softmax

from skldl.plots import LabelEffectsDisplay
from skldl.tabular import column_effects, explain_row, fit_table

LABELS = ["staff", "room", "noise", "price"]
generator = np.random.default_rng(0)
n = 600
table = pd.DataFrame(
    {
        "nights": generator.integers(1, 15, n),
        "paid": generator.normal(120, 30, n).round(2),
        "side": generator.choice(["street", "yard", "park"], n),
        "business": generator.choice(["yes", "no"], n),
        "age": generator.integers(18, 80, n),
        "booked_days_before": generator.integers(0, 200, n),
    }
)
street, yes = table["side"].eq("street"), table["business"].eq("yes")
score = np.zeros((n, 4))
score[:, 0] = 0.10 * table["nights"]
score[:, 1] = 0.9 * table["side"].eq("park")
score[:, 2] = 1.6 * street - 0.3
score[:, 3] = (table["paid"] - 120) / 30 - 0.8 * yes
table[LABELS] = softmax(score + 0.4 * generator.normal(size=(n, 4)), axis=1)
print(table.head(3).round(2).to_string())

# %%
# A model of the table
# --------------------
# `fit_table` encodes the columns (numbers, categories, yes and no), chooses the penalty by cross-validation and returns
# a pipeline that takes DataFrames.

fitted = fit_table(table, LABELS, model="sa-bfgs")
new = table.drop(columns=LABELS)
print(np.round(fitted.model.predict(new.head(2)), 2))

# %%
# Which columns matter, and for which label
# -----------------------------------------
# Each column is shuffled in turn. The map shows how much the prediction of each label changes; the columns without
# effect stay at zero.

effects = column_effects(fitted.model, new, table[LABELS].to_numpy(), n_repeats=3)
figure, ax = plt.subplots(figsize=(7.5, 4), layout="constrained")
LabelEffectsDisplay.from_effects(effects, ax=ax)
plt.show()

# %%
# Why this guest?
# ---------------
# The same for a single row: what made the prediction differ from that of an average guest.

guest = int(np.flatnonzero(street & ~yes)[0])
figure, ax = plt.subplots(figsize=(7.5, 4), layout="constrained")
LabelEffectsDisplay.from_row(explain_row(fitted.model, new, guest), ax=ax)
plt.show()
