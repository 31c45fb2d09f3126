import numpy as np
import pytest

from skldl.data import load_dataset
from skldl.exceptions import DatasetError

PLAIN = "age,height,label_happy,label_sad\n31,1.75,0.75,0.25\n58,1.5,0.5,0.5\n"
X = [[31, 1.75], [58, 1.5]]
D = [[0.75, 0.25], [0.5, 0.5]]


def load(tmp_path, text, name="moods.csv", encoding="utf-8", **options):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode(encoding))
    return load_dataset(path, **options)


@pytest.mark.parametrize(
    "text",
    [
        PLAIN,
        PLAIN.replace("\n", "\r\n"),
        PLAIN.replace("\n", "\r"),
        PLAIN.replace(",", ";"),
        PLAIN.replace(",", "\t"),
        PLAIN.replace(",", ";").replace(".", ","),
        PLAIN.replace(",", "\t").replace(".", ","),
        PLAIN.replace(",", " , "),
        "sep=;\n" + PLAIN.replace(",", ";"),
        "sep=|\r\n" + PLAIN.replace(",", "|"),
        "\n" + PLAIN + "\n\n",
        '"age","height","label_happy","label_sad"\n"31","1,75","0,75","0,25"\n"58","1,5","0,5","0,5"',
        PLAIN.replace("31", "3.1e1"),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_ways_to_write_the_same_table(tmp_path, text, encoding):
    dataset = load(tmp_path, text, encoding=encoding)
    np.testing.assert_array_equal(dataset.X, X)
    np.testing.assert_array_equal(dataset.D, D)
    assert dataset.feature_names == ("age", "height")
    assert dataset.label_names == ("happy", "sad")


def test_tsv_and_capitals(tmp_path):
    assert load(tmp_path, PLAIN.replace(",", "\t"), name="moods.TSV").n_labels == 2
    assert load(tmp_path, PLAIN.replace("label_", "Label_")).label_names == ("happy", "sad")


@pytest.mark.parametrize("prefix", ["label_", "label:", "label.", "d_", "y_"])
def test_default_beginnings(tmp_path, prefix):
    assert load(tmp_path, PLAIN.replace("label_", prefix)).label_names == ("happy", "sad")


def test_label_wins_over_shorter_beginnings(tmp_path):
    text = PLAIN.replace("age", "d_one").replace("height", "d_two")
    assert load(tmp_path, text).feature_names == ("d_one", "d_two")


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        (["happy", "sad"], ("happy", "sad")),
        (["sad", "happy"], ("sad", "happy")),
        (2, ("happy", "sad")),
        ("*a[pd]*", ("happy", "sad")),
    ],
)
def test_labels_can_be_named(tmp_path, labels, names):
    dataset = load(tmp_path, PLAIN.replace("label_", ""), labels=labels)
    assert dataset.label_names == names
    assert dataset.D[0].tolist() == [{"happy": 0.75, "sad": 0.25}[name] for name in names]
    assert dataset.feature_names == ("age", "height")


@pytest.mark.parametrize("labels", ["mood_", "mood_*"])
def test_common_beginning_is_cut_off(tmp_path, labels):
    assert load(tmp_path, PLAIN.replace("label_", "mood_"), labels=labels).label_names == ("happy", "sad")


def test_beginning_stays_where_nothing_would_be_left(tmp_path):
    text = "x,mood,mood2\n1,0.5,0.5\n"
    assert load(tmp_path, text, labels="mood").label_names == ("mood", "mood2")


def test_features_can_be_named_and_columns_ignored(tmp_path):
    text = ",id,age,label_a,label_b\n0,anna,31,0.75,0.25\n1,bo,58,0.5,0.5\n"
    dataset = load(tmp_path, text, ignore=["", "id"])
    assert dataset.feature_names == ("age",)
    np.testing.assert_array_equal(load(tmp_path, text, ignore=[""], features=["age"]).X, [[31], [58]])
    np.testing.assert_array_equal(
        load(tmp_path, text[1:].replace("\n0,", "\n").replace("\n1,", "\n"), ignore="i*").X, dataset.X
    )


def test_table_without_header(tmp_path):
    dataset = load(tmp_path, "31,1.75,0.75,0.25\n58,1.5,0.5,0.5\n", labels=2)
    np.testing.assert_array_equal(dataset.X, X)
    np.testing.assert_array_equal(dataset.D, D)
    assert dataset.feature_names is None
    assert dataset.label_names == ("label_0", "label_1")


def test_blank_lines_do_not_shift_line_numbers(tmp_path):
    with pytest.raises(DatasetError, match="line 5, column 'height' holds 'tall'"):
        load(tmp_path, "age,height,label_a,label_b\n\n31,1.75,0.5,0.5\n\n58,tall,0.5,0.5\n")


HEAD = "age,height,label_happy,label_sad\n31,1.75,0.75,0.25\n"


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("", {}, "is empty"),
        ("  \n \n", {}, "is empty"),
        ("sep=;\n", {}, "is empty"),
        ("age,label_a,label_b\n", {}, "has a header, but no line with numbers"),
        (HEAD + "58,tall,0.5,0.5\n", {}, r"line 3, column 'height' holds 'tall'.*ignore=\['height'\]"),
        (HEAD + "58,1.5,half,0.5\n", {}, "line 3, column 'label_happy' holds 'half', but a label needs a number"),
        (HEAD + "58,,0.5,0.5\n", {}, r"line 3, column 'height' is missing \(''\)"),
        (HEAD + "58,NA,0.5,0.5\n", {}, r"line 3, column 'height' is missing \('NA'\)"),
        (HEAD + "58,nan,0.5,0.5\n", {}, r"line 3, column 'height' is missing \('nan'\)"),
        (HEAD + "58,inf,0.5,0.5\n", {}, "line 3, column 'height' holds 'inf'"),
        (HEAD + "58,1_5,0.5,0.5\n", {}, "line 3, column 'height' holds '1_5', where a number belongs"),
        (HEAD + "58,1.5,0.5\n", {}, "line 3 has 3 cells, but the first line has 4"),
        (HEAD + "58,1.5,0.5,0.5,\n", {}, "line 3 has 5 cells"),
        (HEAD + "58,1.5,0.9,0.5\n", {}, r"Row 1 of labels sums to 1\.4, not 1.*Row 1 stands on line 3"),
        (HEAD + "58,1.5,1.5,-0.5\n", {}, "negative degree -0.5.*Row 1 stands on line 3"),
        (HEAD + "58,1.5,0,0\n", {}, "Row 1 of labels is all zero.*line 3"),
        (HEAD + '58,"1,5",0.5,0.5\n', {}, "line 2, column 'height' holds '1.75', while other cells hold a comma"),
        (HEAD + '58,"1.5,0.5,0.5\n', {}, "line 3 cannot be split into cells"),
        (HEAD.replace("height", "age"), {}, "columns 1 and 2 are both called 'age'"),
        (HEAD.replace("age", ""), {}, r'column 1 has no name .*ignore=\[""\]'),
        (HEAD.replace("label_", ""), {}, r"which columns are the labels\? .* 'age', 'height', 'happy', 'sad'"),
        (HEAD.replace("label_sad", "sad"), {}, "which columns are the labels"),
        (HEAD, {"labels": ["happy", "sad"]}, "has no column 'happy', which labels names"),
        (HEAD, {"labels": "emotion_"}, "no column matches labels='emotion_'"),
        (HEAD, {"labels": "label_h"}, "labels has 1 label"),
        (HEAD, {"labels": 1}, "labels=1 means the last 1 of 4 columns"),
        (HEAD, {"labels": 4}, "at least two labels and one feature"),
        (HEAD, {"ignore": ["weight"]}, "has no column 'weight', which ignore names"),
        (HEAD, {"ignore": ["age", "height"]}, "no column is left for the features"),
        (HEAD, {"features": "*"}, "column 'label_happy' cannot be a label and also a feature"),
        ("1,2,0.5,0.5\n", {}, r"has no header.*load_dataset\(path, labels=3\)"),
        ("1,2,0.5,0.5\n", {"labels": 9}, "labels=9 means the last 9 of 4 columns"),
        ("age height label_a label_b\n1 2 0.5 0.5\n", {}, "has only one column.*commas, semicolons or tabs"),
        (HEAD.encode() + b"\xff\xfe", {}, "line 3 is not UTF-8 text"),
        (b"PK\x00\x00", {}, "is not a text file"),
    ],
)
def test_errors_name_line_and_column(tmp_path, text, options, message):
    with pytest.raises(DatasetError, match=message) as caught:
        load(tmp_path, text, **options)
    assert "moods.csv" in str(caught.value)


def test_long_headers_are_shortened(tmp_path):
    header = ",".join(f"x{j}" for j in range(40))
    with pytest.raises(DatasetError, match=r"'x11', … \(40 in all, the last is 'x39'\)"):
        load(tmp_path, f"{header}\n{','.join('1' * 40)}\n")


def test_large_table_round_trips(tmp_path):
    rng = np.random.default_rng(0)
    features, labels = rng.normal(size=(300, 20)), rng.dirichlet(np.ones(5), size=300)
    header = [f"x{j}" for j in range(20)] + [f"label_{j}" for j in range(5)]
    lines = [",".join(header)] + [",".join(map(repr, row)) for row in np.hstack([features, labels]).tolist()]
    dataset = load(tmp_path, "\n".join(lines))
    np.testing.assert_array_equal(dataset.X, features)
    np.testing.assert_allclose(dataset.D, labels, rtol=1e-15)


def test_a_mark_between_thousands_is_not_a_decimal_comma(tmp_path):
    with pytest.raises(DatasetError, match=r"line 2, column 'label_a' holds '0.25', while other cells hold a comma"):
        load(tmp_path, 'income,label_a,label_b\n"1,000",0.25,0.75\n')


def test_numpy_integers_count_labels(tmp_path):
    assert load(tmp_path, PLAIN, labels=np.int64(2)).n_labels == 2
    assert load(tmp_path, "1,0.25,0.75\n2,0.5,0.5\n", labels=np.int64(2)).n_labels == 2


def test_a_comment_is_named_as_a_reason(tmp_path):
    with pytest.raises(DatasetError, match="comments must be taken out"):
        load(tmp_path, "# made by hand\n" + PLAIN)
