"""
Answers in a class: which wrong answer will be popular?
=======================================================

A teacher has 150 multiple-choice questions, each answered by one class of 25, and wants to know how the next class will
answer a new question: not only how many will be right, but which wrong answer will attract them.

The data are simulated: five properties of a question (difficulty, length, and how plausible each wrong answer looks,
all standard normal) and the level of the class. The shares of the answers are a softmax in which difficulty times level
takes part.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import softmax

from skldl import SABFGSCV, KernelRidgeLDL, MeanDistribution
from skldl.distributions import from_counts
from skldl.metrics import skill
from skldl.uncertainty import noise_floor

ANSWERS = ["right", "wrong 1", "wrong 2", "wrong 3"]


def questions(n, seed, n_pupils=25):
    generator = np.random.default_rng(seed)
    difficulty, length, level = generator.normal(size=(3, n))
    lures = generator.normal(size=(n, 3))
    right = 0.6 - difficulty + 0.8 * level - 0.4 * difficulty * level - 0.1 * length
    truth = softmax(np.column_stack([right, 0.9 * lures]), axis=1)
    X = np.column_stack([difficulty, length, level, lures])
    return X, truth, generator.multinomial(n_pupils, truth)


# %%
# How good can a prediction be?
# -----------------------------
# Even the true shares do not predict the answers of 25 pupils exactly. The noise floor is the divergence
# that remains for such a prediction. It is a range, since answers that nobody gave may be more or less likely;
# ``explained`` is the part of the rest that the model removes, at the lower end of the floor.

X, truth, counts = questions(150, 0)
D = from_counts(counts)
X_new, truth_new, counts_new = questions(300, 1)
D_new = from_counts(counts_new)
reference = MeanDistribution().fit(X, D).predict(X_new)
floor = noise_floor(counts_new, ["kullback_leibler"])["kullback_leibler"]
print(f"noise floor {floor}")
models = {"linear (SABFGSCV)": SABFGSCV(), "kernel (KernelRidgeLDL)": KernelRidgeLDL()}
predictions = {name: model.fit(X, D).predict(X_new) for name, model in models.items()}
for name, P in predictions.items():
    found = skill(D_new, P, reference, counts=counts_new)
    print(f"{name:26s}skill {found:.2f} ({found.low:.2f} to {found.high:.2f}), explained {found.explained:.2f}")

# %%
# Which wrong answer is the popular one?
# --------------------------------------
# The figure compares predicted and true shares of the most popular wrong answer of each new question.

P = predictions["linear (SABFGSCV)"]
popular = 1 + P[:, 1:].argmax(axis=1)
hits = (popular == 1 + truth_new[:, 1:].argmax(axis=1)).mean()
print(f"the most popular wrong answer is named right for {hits:.0%} of the new questions")
rows = np.arange(len(P))
figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4), layout="constrained")
left.plot(P[rows, popular], truth_new[rows, popular], ".", alpha=0.6)
left.plot([0, 0.8], [0, 0.8], color="0.5", linestyle=":")
left.set(xlabel="predicted share", ylabel="true share", title="The most popular wrong answer")
row = int(np.argmax(P[:, 1:].max(axis=1)))
for offset, (name, degrees) in enumerate(
    {"predicted": P[row], "true": truth_new[row], "the next class of 25": D_new[row]}.items()
):
    right.bar(np.arange(4) + 0.27 * (offset - 1), degrees, width=0.27, label=name)
right.set_xticks(range(4), ANSWERS)
right.set(ylabel="share of the class", title="A question with a strong lure")
right.legend(frameon=False)
plt.show()
