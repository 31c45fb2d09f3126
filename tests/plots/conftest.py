"""A figure can be asked whether its texts overlap; predictions with known noise can be made."""

import numpy as np
import pytest
from matplotlib.text import Text


@pytest.fixture
def check_figure(monkeypatch):
    """Demand of a figure that something is drawn, that no text leaves it, and that no two texts overlap."""

    def check(figure):
        texts = []
        draw = Text.draw

        def remember(text, renderer, *args, **kwargs):
            draw(text, renderer, *args, **kwargs)
            if text.get_text().strip() and text.get_visible():
                texts.append((text.get_text(), text.get_window_extent(renderer)))

        with monkeypatch.context() as patch:  # ticks outside the view exist but are never drawn
            patch.setattr(Text, "draw", remember)
            figure.canvas.draw()
        for word, box in texts:
            assert box.x0 >= -1, f"{word!r} leaves the figure on the left"
            assert box.y0 >= -1, f"{word!r} leaves the figure at the foot"
            assert box.x1 <= figure.bbox.x1 + 1, f"{word!r} leaves the figure on the right"
            assert box.y1 <= figure.bbox.y1 + 1, f"{word!r} leaves the figure at the top"
        for number, (word, box) in enumerate(texts):
            for other, second in texts[number + 1 :]:
                width = min(box.x1, second.x1) - max(box.x0, second.x0)
                height = min(box.y1, second.y1) - max(box.y0, second.y0)
                assert width <= 1.5 or height <= 1.5, f"{word!r} and {other!r} overlap by {width:.1f} × {height:.1f}"
        pixels = np.asarray(figure.canvas.buffer_rgba())[..., :3]
        assert np.ptp(pixels) > 100, "the picture is empty"
        grey = pixels @ [0.299, 0.587, 0.114]
        assert np.ptp(grey) > 100, "the picture is empty in grey"

    return check


@pytest.fixture
def make_predictions():
    """Make true distributions and those of some models, which differ from them by known amounts of noise."""

    def make(n_labels, names=("AA-kNN", "SA-BFGS", "Mean"), n_samples=60, seed=0):
        generator = np.random.default_rng(seed)
        D = generator.dirichlet(np.full(n_labels, 2.0), size=n_samples)
        noisy = {name: D * np.exp(generator.normal(scale=0.2 + 0.1 * i, size=D.shape)) for i, name in enumerate(names)}
        return D, {name: table / table.sum(axis=1, keepdims=True) for name, table in noisy.items()}

    return make
