"""A first job on bundled data: fit the mean baseline to nine tenths of the lexicon and measure it on the last tenth."""

from skldl import MeanDistribution
from skldl.datasets import load_lexicon
from skldl.metrics import evaluate

dataset = load_lexicon()
n_train = len(dataset.D) * 9 // 10
model = MeanDistribution().fit(dataset.X[:n_train], dataset.D[:n_train])
print(f"{dataset}\n")
for name, value in evaluate(dataset.D[n_train:], model.predict(dataset.X[n_train:])).items():
    print(f"{name:18}{value:8.4f}")
