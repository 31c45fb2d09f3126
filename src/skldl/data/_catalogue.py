"""Catalogue of the fifteen real datasets of Geng (2016): sizes, label names, citations, terms, addresses, checksums.

The data themselves are free for academic, non-profit use and carry no open licence, so they are not part of this
package. Sizes are those of the paper's Table 1, in its order.
"""

import difflib
from dataclasses import dataclass

from skldl.exceptions import UnknownDatasetError
from skldl.utils.spelling import plain

BASE_URL = "https://raw.githubusercontent.com/SpriteMisaka/PyLDL/main/datasets"
TERMS = "Free for academic, non-profit use; no open licence. Not shipped with this package."

_GENG = 'X. Geng, "Label distribution learning", IEEE Transactions on Knowledge and Data Engineering 28(7), 2016.'
_YEAST = (
    'M. B. Eisen, P. T. Spellman, P. O. Brown and D. Botstein, "Cluster analysis and display of genome-wide expression '
    'patterns", PNAS 95(25), 1998. '
)
_YEAST_NOTE = (
    "All ten Yeast sets share one X (2,465 genes, 30 of them duplicates): results on them are not ten independent "
    "pieces of evidence."
)
_EMOTIONS_NOTE = (
    "The order of the emotions is not the one in which the paper lists them; it was inferred from the file: {evidence}."
)


@dataclass(frozen=True)
class CatalogueEntry:
    """Facts about one dataset of the paper.

    Parameters
    ----------
    name : str
        Name of the dataset and, with ``.mat``, of its file.
    n_samples, n_features, n_labels : int
        Sizes as printed in the paper.
    description, citation : str
        Description and citation.
    aliases : tuple of str, default=()
        Other spellings, such as those of the paper's tables.
    label_names : tuple of str, default=None
        Names of the labels in the order of the columns, or None if unknown.
    sha256 : str, default=None
        Checksum of the published file, or None if unknown.
    note : str, default=""
        Note for users.
    other_n_samples : tuple of int, default=()
        Numbers of rows of other files of this name that are in use.
    terms : str
        Terms of use.

    Examples
    --------
    >>> from skldl.data import CATALOGUE
    >>> entry = CATALOGUE["SJAFFE"]
    >>> entry.n_samples, entry.n_features, entry.n_labels
    (213, 243, 6)
    """

    name: str
    n_samples: int
    n_features: int
    n_labels: int
    description: str
    citation: str
    aliases: tuple[str, ...] = ()
    label_names: tuple[str, ...] | None = None
    sha256: str | None = None
    note: str = ""
    other_n_samples: tuple[int, ...] = ()
    terms: str = TERMS

    @property
    def file_name(self) -> str:
        """Name of the file."""
        return f"{self.name}.mat"

    @property
    def url(self) -> str:
        """Address of the file."""
        return f"{BASE_URL}/{self.file_name}"


def _yeast(experiment: str, n_labels: int, sha256: str) -> CatalogueEntry:
    return CatalogueEntry(
        name=f"Yeast_{experiment}",
        n_samples=2465,
        n_features=24,
        n_labels=n_labels,
        description=f"Normalised expression of yeast genes at {n_labels} time points of the experiment {experiment}; "
        "the features are phylogenetic profiles. Which column is which time point is not known.",
        citation=_YEAST + _GENG,
        sha256=sha256,
        note=_YEAST_NOTE,
    )


_ENTRIES = (
    _yeast("alpha", 18, "8b7f7788371326776299407785a5520cd05b194f57cf3babdeb21fe3d4281167"),
    _yeast("cdc", 15, "c59015213b54a93d1142c2dda0cf4907b5672d25d3343abc8b34f1cf8ce7ccc9"),
    _yeast("elu", 14, "d78808326a3e80ada817e1fb77308a4561a23176843a216f458e77e0e2a8937f"),
    _yeast("diau", 7, "adb77a20d5d84ea0e28bfa5c99ba094e9ba950b0d0e65bfb24551badfb8ce1ac"),
    _yeast("heat", 6, "6d55eccc10c97969542c5acc58194e34fe046557f876fc1ae3cd3f7a46159c94"),
    _yeast("spo", 6, "5a0bf3c55f268b24ff8b846a135befe2bc25ed085a46fc1c4b7f4c1f4c8ff16f"),
    _yeast("cold", 4, "7b1f599ec4791052f9549c62cc6c8677af3e982a9f4bddb298c2bb2694811f21"),
    _yeast("dtt", 4, "26ecc88e892f5964140ff144d372d15c83112f10e781c8ed497458b9286e1f1a"),
    _yeast("spo5", 3, "24e55ad6a9e68fcf80880e526c617ef44bd496022b99e49e397356e6b5e520ad"),
    _yeast("spoem", 2, "925259095ffe88269661e39fdeea39e558954356817b0480d777a98bbc917ca1"),
    CatalogueEntry(
        name="Human_Gene",
        n_samples=30542,
        n_features=36,
        n_labels=68,
        description="Normalised expression of human genes in 68 diseases; the features are numerical descriptors of "
        "the gene sequence. Which column is which disease is not known.",
        citation='J.-F. Yu, D.-K. Jiang, K. Xiao, Y. Jin, J.-H. Wang and X. Sun, "Discriminate the falsely predicted '
        'protein-coding genes in Aeropyrum pernix K1 genome based on graphical representation", MATCH Communications '
        f"in Mathematical and in Computer Chemistry 67(3), 2012. {_GENG}",
        note="The available file may have 17,892 rows instead of the paper's 30,542.",
        other_n_samples=(17892,),
    ),
    CatalogueEntry(
        name="Natural_Scene",
        n_samples=2000,
        n_features=294,
        n_labels=9,
        description="Natural scene images; ten people ranked the relevant of nine labels, and the rankings were turned "
        "into distributions by nonlinear programming. Colour features.",
        citation='X. Geng and L. Luo, "Multilabel ranking with inconsistent rankers", CVPR 2014. M. R. Boutell, '
        'J. Luo, X. Shen and C. M. Brown, "Learning multi-label scene classification", Pattern Recognition 37(9), '
        f"2004. {_GENG}",
        label_names=("plant", "sky", "cloud", "snow", "building", "desert", "mountain", "water", "sun"),
        note="Different files are in use (one with X in single precision), so no checksum is recorded.",
    ),
    CatalogueEntry(
        name="SJAFFE",
        n_samples=213,
        n_features=243,
        n_labels=6,
        description="Face images of ten Japanese women; 60 people scored six emotions on five levels. "
        "Local binary patterns as features.",
        citation='M. Lyons, S. Akamatsu, M. Kamachi and J. Gyoba, "Coding facial expressions with Gabor wavelets", '
        f"FG 1998. {_GENG}",
        aliases=("s-JAFFE", "JAFFE"),
        label_names=("happiness", "sadness", "surprise", "anger", "disgust", "fear"),
        sha256="bdd53fb033a275b39b8fd873809cd69f3cee13234f5aa472aea0f5ad73b8a04b",
        note=_EMOTIONS_NOTE.format(
            evidence="it is the order of the ratings published with JAFFE, and the highest degree moves through the "
            "columns in that order as each model's images do"
        ),
    ),
    CatalogueEntry(
        name="SBU_3DFE",
        n_samples=2500,
        n_features=243,
        n_labels=6,
        description="Face images of 100 people; 23 people scored six emotions on five levels. "
        "Local binary patterns as features.",
        citation='L. Yin, X. Wei, Y. Sun, J. Wang and M. J. Rosato, "A 3D facial expression database for facial '
        f'behavior research", FG 2006. {_GENG}',
        aliases=("s-BU_3DFE", "BU_3DFE"),
        label_names=("happiness", "anger", "sadness", "disgust", "fear", "surprise"),
        sha256="59dec80525aaa859b8400a92e5b94e54b405ce6ed60bfad9ec95e58964e84707",
        note=_EMOTIONS_NOTE.format(
            evidence="each person's 25 rows are in the order of BU_3DFE's file names, anger, disgust, fear, "
            "happiness (four strengths each), neutral, sadness, surprise, and in each block one column rises with "
            "the strength"
        ),
    ),
    CatalogueEntry(
        name="Movie",
        n_samples=7755,
        n_features=1869,
        n_labels=5,
        description="Films with the fraction of Netflix users who gave one to five stars; the features are metadata "
        "such as genre, director and budget, nearly all binary.",
        citation='X. Geng and P. Hou, "Pre-release prediction of crowd opinion on movies by label distribution '
        f'learning", IJCAI 2015. {_GENG}',
        label_names=("1 star", "2 stars", "3 stars", "4 stars", "5 stars"),
        sha256="5c8629905fdf18640410d43b30f1a84c17473df38e48f279f5a2af11019a1bac",
        note="98.9 % of X is zero, so X is a sparse matrix.",
    ),
)

CATALOGUE: dict[str, CatalogueEntry] = {entry.name: entry for entry in _ENTRIES}


BUILT_IN: dict[str, dict[str, int | str]] = {
    "Lexicon": {"n": 7506, "q": 512, "c": 9, "origin": "bundled", "what": "Words rated from -4 to 4"},
    "Tweets": {"n": 4200, "q": 1000, "c": 9, "origin": "bundled", "what": "Short texts rated from -4 to 4"},
    "Artificial": {"n": 500, "q": 3, "c": 3, "origin": "generated", "what": "Geng's artificial data"},
}
"""Datasets that `load_dataset` makes without a file: from each name to its row in `list_datasets`."""
FETCHED_TEXTS: dict[str, dict[str, int | str]] = {
    name: {"n": n, "q": 1000, "c": 9, "origin": "fetch_dataset", "what": f"Sentences {of} rated from -4 to 4"}
    for name, n, of in (
        ("VADER products", 3708, "on products"),
        ("VADER films", 10605, "on films"),
        ("VADER news", 5190, "of newspapers"),
    )
}
"""Texts with the ratings of VADER that are downloaded: from each name to its row in `list_datasets`."""
_BY_SPELLING = {plain(spelling): entry for entry in _ENTRIES for spelling in (entry.name, *entry.aliases)}


def in_catalogue(name: str) -> bool:
    """Whether a name, in any spelling, is in the catalogue."""
    return plain(name) in _BY_SPELLING


def find_entry(name: str) -> CatalogueEntry:
    """Find the entry of a dataset of the paper by its name in any spelling.

    Parameters
    ----------
    name : str
        Name or alias; case, hyphens, underscores and blanks do not matter.

    Returns
    -------
    CatalogueEntry
        The entry.

    Raises
    ------
    UnknownDatasetError
        If there is no such dataset in the catalogue.

    Examples
    --------
    >>> from skldl.data import find_entry
    >>> find_entry("s-JAFFE").name, find_entry("natural scene").n_labels
    ('SJAFFE', 9)
    """
    entry = _BY_SPELLING.get(plain(name))
    if entry is None:
        for built_in in BUILT_IN:
            if plain(name) == plain(built_in):
                raise UnknownDatasetError(f"{built_in} needs no file and no download: load_dataset({built_in!r}).")
        raise UnknownDatasetError(f"There is no dataset {name!r}. {suggestion(name)}")
    return entry


def suggestion(name: str) -> str:
    """A hint for an unknown name: similar names, and all names."""
    names = {plain(name): name for name in (*BUILT_IN, *FETCHED_TEXTS)} | {
        word: entry.name for word, entry in _BY_SPELLING.items()
    }
    close = difflib.get_close_matches(plain(name), list(names), n=3)
    meant = list(dict.fromkeys(names[spelling] for spelling in close))
    hint = f"Did you mean {' or '.join(meant)}? " if meant else ""
    return f"{hint}Known are: {', '.join((*BUILT_IN, *FETCHED_TEXTS, *CATALOGUE))}; see skldl.data.list_datasets()."
