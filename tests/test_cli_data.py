"""Tables, columns and labels of the command, and what it says to wrong ones; all in this process."""

from __future__ import annotations

import io
import json
import pickle
import signal
import sys

import numpy as np
import pandas as pd
import pytest

import kernel_table
import slimsvm
from command import IRIS, QUICK, customers, iris, write_files
from slimsvm.cli import main, tables
from slimsvm.persistence import describe


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = write_files(tmp_path_factory.mktemp("data"))
    for name, data, more in (
        ("iris", "iris.csv", ("-t", "species")),
        ("churn", "customers.csv", ("-t", "churned", "--drop", "customer")),
    ):
        files = (str(folder / data), "-o", str(folder / f"{name}.slim"))
        assert main(["train", *files, *more, *IRIS, "--test-size", "0", "--quiet"]) == 0
    (folder / "svc.pkl").write_bytes(pickle.dumps({"not": "a model"}))
    (folder / "damaged.pkl").write_bytes(b"\x80\x04 this is no pickle")
    return folder


@pytest.fixture
def run(folder, monkeypatch, capsys):
    def run(*arguments, stdin=None):
        """Exit code, standard output and standard error of the command in that folder."""
        monkeypatch.chdir(folder)
        if stdin is not None:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        code = main([str(one) for one in arguments])
        return code, *capsys.readouterr()

    return run


@pytest.fixture
def trained(run, tmp_path):
    def trained(data, *options):
        """A model of a file, and what was said."""
        path = tmp_path / "model.slim"
        code, out, err = run("train", data, *IRIS, "--test-size", "0", *options, "-o", path, "--json")
        assert code == 0, err
        return slimsvm.load(path), json.loads(out), err

    return trained


def table(folder, columns, name="made.csv", **more):
    """A CSV file of these columns with labels of two classes."""
    frame = pd.DataFrame(columns)
    if "label" not in frame:
        frame["label"] = np.arange(len(frame)) % 2
    frame.to_csv(folder / name, index=False, **more)
    return name


RNG = np.random.default_rng(0)
SOME = {"a": RNG.normal(size=40).round(3), "b": RNG.normal(size=40).round(3)}

# --- wrong uses ---------------------------------------------------------------------------------------------------

TRAIN = ("train", "iris.csv", "-t", "species", "-o", "x.slim")
LEARNED = kernel_table.in_sentence(semidefinite=True)
WRONG = {
    "no command of this name": (["tarin"], 2, "'tarin'"),
    "no such option": ([*TRAIN, "--vektors", "3"], 2, "--vektors"),
    "no output": (["train", "iris.csv", "-t", "species"], 2, "--output"),
    "no target": (["train", "iris.csv", "-o", "x.slim"], 2, "--target; columns of iris.csv: 'sepal_length'"),
    "target misspelt": (["train", "iris.csv", "-t", "specie", "-o", "x.slim"], 2, "did you mean 'species'?"),
    "no vectors": ([*TRAIN, "--vectors", "0"], 2, "at least 1, or auto"),
    "vectors in words": ([*TRAIN, "--vectors", "many"], 2, "at least 1, or auto"),
    "vectors and bytes": ([*TRAIN, "--vectors", "5", "--bytes", "500"], 2, "exclude each other"),
    "too few bytes": ([*TRAIN, "--bytes", "20"], 1, "--bytes 20 are too few"),
    "bytes below 1": ([*TRAIN, "--bytes", "0"], 2, "--bytes"),
    "C of 0": ([*TRAIN, "--C", "0"], 2, "--C 0: must be a number above 0, or search"),
    "gamma in words": ([*TRAIN, "--gamma", "wide"], 2, "--gamma wide"),
    "unknown kernel": ([*TRAIN, "--kernel", "rbff"], 2, f"{', '.join(LEARNED[:-1])} or {LEARNED[-1]}"),
    "no threads": ([*TRAIN, "--jobs", "0"], 2, "--jobs 0"),
    "test size above 1": ([*TRAIN, "--test-size", "1.5"], 2, "--test-size"),
    "test size too small": ([*TRAIN, "--test-size", "0.001"], 2, "too few for 3 classes"),
    "no such file": (["train", "iris.cvs", "-t", "y", "-o", "x.slim"], 1, "no such file"),
    "no such CSV file": (["train", "flowers.csv", "-t", "y", "-o", "x.slim"], 1, "flowers.csv: No such file"),
    "a directory": (["train", ".", "-t", "y", "-o", "x.slim"], 1, "is a directory"),
    "unknown kind of file": (["train", "data.xyz", "-t", "y", "-o", "x.slim"], 2, "unknown kind of file"),
    "unknown format": ([*TRAIN, "--format", "excel"], 2, "csv, parquet, svmlight"),
    "not Parquet": (["train", "not_parquet.parquet", "-t", "y", "-o", "x.slim"], 1, "not a Parquet file"),
    "not svmlight": (["train", "not.svm", "-o", "x.slim"], 1, "not an svmlight file"),
    "empty file": (["train", "empty.csv", "-t", "y", "-o", "x.slim"], 1, "is empty"),
    "names only": (["train", "names_only.csv", "-t", "label", "-o", "x.slim"], 1, "no rows"),
    "no names": (["train", "no_names.csv", "-t", "3", "-o", "x.slim"], 1, "--no-header"),
    "a name twice": (["train", "twice.csv", "-t", "label", "-o", "x.slim"], 1, "more than one column is called 'a'"),
    "ragged rows": (["train", "ragged.csv", "-t", "label", "-o", "x.slim"], 1, "saw 4"),
    "another encoding": (["train", "latin.csv", "-t", "label", "-o", "x.slim"], 1, "--encoding latin-1"),
    "a long separator": ([*TRAIN, "--sep", ";;"], 2, "one character"),
    "one class": (["train", "one_class.csv", "-t", "label", "-o", "x.slim"], 1, "one class only"),
    "few rows": (["train", "few.csv", "-t", "label", "-o", "x.slim"], 1, "too few"),
    "regression": (
        ["train", "numbers.csv", "-t", "label", "--task", "classification", "-o", "x.slim"],
        1,
        "regression",
    ),
    "identifiers": (["train", "customers.csv", "-t", "churned", "-o", "x.slim"], 1, "--drop customer"),
    "unknown column": ([*TRAIN, "--columns", "sepal_lenght"], 2, "did you mean 'sepal_length'"),
    "target among columns": ([*TRAIN, "--columns", "species,petal_width"], 2, "this column is the target"),
    "chosen and dropped": ([*TRAIN, "--columns", "petal_width", "--drop", "petal_width"], 2, "both name"),
    "weight of text": ([*TRAIN, "--weight", "species"], 1, "row 1 has 'setosa'"),
    "not .slim": (["train", "iris.csv", "-t", "species", "-o", "x.pkl"], 2, "must end in .slim"),
    "no such folder": (["train", "iris.csv", "-t", "species", "-o", "no/x.slim"], 1, "no such directory"),
    "not a model": (["predict", "not_a_model.slim", "iris.csv"], 1, "not_a_model.slim"),
    "no model": (["info", "no.slim"], 1, "no.slim: No such file"),
    "missing columns": (["predict", "iris.slim", "customers.csv"], 1, "no column 'sepal_length', 'sepal_width'"),
    "probabilities without": (["predict", "iris.slim", "iris.csv", "--proba"], 1, "--probability"),
    "output of unknown kind": (["predict", "iris.slim", "iris.csv", "-o", "x.xlsx"], 2, ".csv"),
    "labels of others": (["score", "iris.slim", "iris.csv", "-t", "petal_width"], 1, "is a class of the model"),
    "sizes in words": (["frontier", "iris.csv", "-t", "species", "--sizes", "a,b"], 2, "such as 4,8,16"),
    "report without rows": (
        ["frontier", "iris.csv", "-t", "species", "--html", "x.html", "--test-size", "0"],
        2,
        "needs rows that judge",
    ),
    "picture of unknown kind": (["frontier", "iris.csv", "-t", "species", "--plot", "x.doc"], 2, ".png"),
    "neither C nor ONNX": (["export", "iris.slim"], 2, "one of --c FILE and --onnx FILE"),
    "C and ONNX": (["export", "iris.slim", "--c", "x.h", "--onnx", "x.onnx"], 2, "not both"),
    "int8 for ONNX": (["export", "iris.slim", "--onnx", "x.onnx", "--int8"], 2, "go with --c"),
    "a name with a space": (["export", "iris.slim", "--c", "x.h", "--name", "my model"], 2, "name in C"),
    "a pickle without trust": (["compress", "svc.pkl", "-o", "x.slim"], 2, "--trust"),
    "a pickle of something else": (["compress", "svc.pkl", "--trust", "-o", "x.slim"], 1, "cannot be compressed"),
    "a damaged pickle": (["compress", "damaged.pkl", "--trust", "-o", "x.slim"], 1, "cannot be unpickled"),
    "a model of unknown kind": (["compress", "iris.csv", "-o", "x.slim"], 2, "unknown kind of model"),
    "target without data": (["compress", "iris.slim", "-t", "species", "-o", "x.slim"], 2, "--target names a column"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_use(run, folder, case):
    """One line that says what is wrong, an exit code, no traceback, no file."""
    arguments, expected, words = WRONG[case]
    code, out, err = run(*arguments, stdin="")
    assert code == expected, err
    assert words in err
    lines = [line for line in err.splitlines() if not line.startswith("note: ")]
    assert len(lines) == 1
    assert lines[0].startswith("slimsvm: ")
    assert "Traceback" not in err
    assert out == ""
    assert not any((folder / f"x{suffix}").exists() for suffix in (".slim", ".h", ".onnx", ".html"))


def test_tracebacks_are_for_those_who_ask(run, monkeypatch):
    assert "Traceback" in run("info", "no.slim", "--debug")[2]
    monkeypatch.setenv("SLIMSVM_DEBUG", "1")
    assert "Traceback" in run("info", "no.slim")[2]


def test_an_interrupt(run, monkeypatch):
    monkeypatch.setattr(tables, "read", lambda *given: signal.raise_signal(signal.SIGINT))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background of a shell ignore it
    try:
        assert run(*TRAIN) == (130, "", "slimsvm: interrupted\n")
    finally:
        signal.signal(signal.SIGINT, before)


class Tripwire:
    """A pickle that runs something when it is read."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


@pytest.mark.parametrize(("answer", "read"), [("n\n", False), ("\n", False), ("y\n", True)])
def test_a_pickle_is_read_only_if_the_answer_is_yes(run, folder, monkeypatch, tmp_path, answer, read):
    (folder / "trap.pkl").write_bytes(pickle.dumps(Tripwire(tmp_path / "ran")))
    terminal = io.StringIO(answer)
    monkeypatch.setattr(terminal, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys, "stdin", terminal)
    code, _, err = run("compress", "trap.pkl", "-o", "x.slim")
    assert code == 1
    assert "can run any code" in err
    assert (tmp_path / "ran").exists() == read


# --- reading ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["semicolons.csv", "numbered.tsv", "numbered.csv.gz", "numbered.parquet", "numbered.svm"]
)
def test_the_same_rows_give_the_same_model(trained, name):
    expected = trained("numbered.csv", "-t", "label")[0]
    model = trained(name, "-t", "label")[0]
    assert (model[-1].vectors_ == expected[-1].vectors_).all()
    assert (model[-1].vector_coef_ == expected[-1].vector_coef_).all()
    assert model.classes_.dtype.kind == "i"


def test_formats_mix(run, trained, tmp_path):
    """A model from CSV predicts svmlight, where zeros are left out, and the other way round."""
    trained("numbered.csv", "-t", "label")
    path = tmp_path / "model.slim"
    expected = run("predict", path, "numbered.csv")[1]
    assert run("predict", path, "numbered.svm")[1] == expected
    (tmp_path / "short.svm").write_text("0 1:5.1 2:3.5\n")
    assert run("predict", path, tmp_path / "short.svm")[0] == 0
    assert json.loads(run("score", path, "numbered.svm", "--json")[1])["rows"] == 150


def test_without_names(trained):
    model, said, _ = trained("no_names.csv", "--no-header", "-t", "3")
    assert said["columns"] == 2
    assert list(model.feature_names_in_) == ["1", "2"]


def test_a_decimal_comma(trained, run, folder):
    name = table(folder, SOME, sep=";", decimal=",")
    assert "--decimal ," in run("train", name, "-t", "label", "-o", "x.slim")[2]
    model = trained(name, "-t", "label", "--decimal", ",")[0]
    same = trained(table(folder, SOME), "-t", "label")[0]
    assert (model[-1].vectors_ == same[-1].vectors_).all()


def test_quotes_and_a_byte_order_mark(trained, folder):
    rows = "".join(f'"{k}, or so",{k % 3},{k % 2}\n' for k in range(4)) * 5
    (folder / "quoted.csv").write_text('\ufeff"the, first",b,label\n' + rows, encoding="utf-8")
    _, said, _ = trained("quoted.csv", "-t", "label")
    assert said["columns"] == 2
    assert said["inputs"] == 5


# --- columns ------------------------------------------------------------------------------------------------------


def test_preprocessing_is_only_what_is_needed(trained, folder):
    assert [name for name, _ in trained("iris.csv", "-t", "species")[0].steps] == ["scale", "classifier"]
    assert [name for name, _ in slimsvm.load(folder / "churn.slim").steps] == ["encode", "scale", "classifier"]


def test_missing_and_unknown_values(run, folder):
    """Medians and a category for what is missing; unknown categories are told, and get zeros."""
    data, model = customers(), slimsvm.load(folder / "churn.slim")
    new = data.head(8).copy()
    new.loc[0, "age"], new.loc[1, "city"], new.loc[2, "city"], new.loc[3, "plan"] = np.nan, None, "Paris", "z"
    new.to_csv(folder / "new.csv", index=False)
    code, out, err = run("predict", "churn.slim", "new.csv")
    assert code == 0
    assert "'city' has categories that the model does not know ('Paris') in 1 rows" in err
    columns = ["income", "member", "age", "city", "plan"]
    filled = new[columns].fillna({"city": ""})
    with pytest.warns(UserWarning, match="unknown categories"):
        assert out.split()[1:] == list(model.predict(filled))
    new.loc[0, "income"] = np.nan
    new.to_csv(folder / "new.csv", index=False)
    code, _, err = run("predict", "churn.slim", "new.csv")
    assert code == 1
    assert "column 'income' has no value in row 1" in err
    new["income"] = ["much"] * 8
    new.to_csv(folder / "new.csv", index=False)
    assert "needs numbers; row 1 has 'much'" in run("predict", "churn.slim", "new.csv")[2]


def test_parquet_types(trained, folder):
    """Categories, nullable types and truth values are what they are in CSV."""
    frame = customers().convert_dtypes()
    frame["city"] = frame.city.astype("category")
    frame.to_parquet(folder / "typed.parquet")
    options = ("-t", "churned", "--drop", "customer")
    model, expected = trained("typed.parquet", *options)[0], slimsvm.load(folder / "churn.slim")
    assert (model[-1].vectors_ == expected[-1].vectors_).all()


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ([f"2024-01-{k % 28 + 1:02d}" for k in range(40)], "dates"),
        ([f"a long remark on thing number {k}" for k in range(40)], "free text"),
        ([f"id{k}" for k in range(40)], "another text in nearly every row"),
        ([*range(39), "unknown"], "--missing unknown"),
        ([float("inf"), *range(39)], "infinite value in row 1"),
    ],
)
def test_columns_that_are_no_inputs(run, folder, column, words):
    """The message says what to do."""
    code, _, err = run("train", table(folder, SOME | {"odd": column}), "-t", "label", "-o", "x.slim")
    assert code == 1
    assert "'odd'" in err
    assert words in err


def test_many_categories(run, trained, folder):
    name = table(folder, {"a": RNG.normal(size=240).round(3), "code": [f"c{k % 60}" for k in range(240)]})
    code, _, err = run("train", name, "-t", "label", "-o", "x.slim")
    assert (code, "60 different texts" in err) == (1, True)
    assert trained(name, "-t", "label", "--categorical", "code")[1]["inputs"] == 61


def test_columns_that_say_nothing(trained, folder):
    """Constant ones and row numbers are left out, with a note; asked for, row numbers stay."""
    name = table(folder, {"id": range(1, 41), "same": 7, "gone": np.nan} | SOME)
    _, said, err = trained(name, "-t", "label")
    assert said["columns"] == 2
    for column in ("id", "same", "gone"):
        assert f"note: column '{column}'" in err
    assert trained(name, "-t", "label", "--columns", "id,a")[1]["columns"] == 2


def test_numbers_that_are_codes(trained, folder):
    """A column of codes with gaps: 3.0 in one file is 3 in another."""
    code = np.where(np.arange(40) % 9 == 0, np.nan, np.arange(40) % 4)
    model, said, _ = trained(table(folder, SOME | {"code": code}), "-t", "label", "--categorical", "code")
    assert said["inputs"] == 7
    assert [str(one) for one in model["encode"].named_transformers_["category"].categories_[0]] == [
        "",
        "0",
        "1",
        "2",
        "3",
    ]


def test_texts_for_missing(trained, folder):
    name = table(folder, SOME | {"odd": [*range(39), "unknown"]})
    model = trained(name, "-t", "label", "--missing", "unknown")[0]
    assert model["encode"].named_transformers_["filled"].statistics_.tolist() == [19.0]


# --- labels, weights, rows held out -------------------------------------------------------------------------------


@pytest.mark.parametrize("labels", [[3, 7], ["x", "y"], [True, False], [1.0, 2.0]])
def test_labels_come_back_as_they_were(run, trained, folder, tmp_path, labels):
    name = table(folder, SOME | {"label": labels * 20})
    model = trained(name, "-t", "label")[0]
    assert model.classes_.tolist() == sorted(labels)
    assert type(model.classes_.tolist()[0]) is type(labels[0])
    out = run("predict", tmp_path / "model.slim", name)[1]
    assert set(out.split()[1:]) <= set(map(str, labels))
    assert describe(tmp_path / "model.slim")["metadata"]["classes"] == sorted(labels)


def test_missing_labels(run, folder):
    name = table(folder, SOME | {"label": [None, *(["x", "y"] * 20)[:39]]})
    code, _, err = run("train", name, "-t", "label", "-o", "x.slim")
    assert code == 1
    assert "no value in 1 rows (the first is row 1)" in err


def test_weights(trained, folder):
    """Weight 0 is the same as leaving the row out."""
    frame = iris().assign(count=np.arange(150) % 3)
    frame.to_csv(folder / "weighted.csv", index=False)
    model = trained("weighted.csv", "-t", "species", "--weight", "count")[0]
    X, y, w = frame.iloc[:, :4], frame.species, frame["count"]
    expected = slimsvm.SlimSVC(n_vectors=6, C=10, gamma=0.3, scales="fixed").fit(model["scale"].transform(X), y, w)
    assert (model[-1].vectors_ == expected.vectors_).all()


def test_rows_of_another_file_judge(run, folder, tmp_path):
    frame = iris()
    frame.iloc[::2].to_csv(folder / "half.csv", index=False)
    frame.iloc[1::2, ::-1].to_csv(folder / "rest.csv", index=False)
    path = tmp_path / "model.slim"
    said = json.loads(run("train", "half.csv", "-t", "species", "--test", "rest.csv", *IRIS, "-o", path, "--json")[1])
    again = json.loads(run("score", path, "rest.csv", "--json")[1])
    assert said["held_out"]["rows"] == 75
    assert said["held_out"]["error"] == again["error"]
    assert said["held_out"]["majority_error"] == pytest.approx(2 / 3)


def test_bytes(run, tmp_path):
    """All that a device needs is within the budget: the scaling of the inputs, too."""
    path = tmp_path / "model.slim"
    code, out, _ = run("train", "iris.csv", "-t", "species", "--bytes", "200", *QUICK, "-o", path, "--json")
    assert code == 0
    assert json.loads(out)["bytes"] <= 200
    code, _, err = run("export", path, "--c", tmp_path / "iris.h", "--int8", "--bytes", "260")
    assert (code, err) == (0, "")
    assert slimsvm.export.quantize(slimsvm.load(path)).n_bytes <= 200


def test_more_bytes_do_no_harm(run, tmp_path, folder):
    """A larger budget never fails where a smaller one works, and its model takes no less; the reason is never empty."""
    wide = {f"x{k}": np.random.default_rng(k).normal(size=60).round(3) for k in range(9)}
    wide["label"] = (wide["x0"] + wide["x1"] > 0).astype(int)
    for name, target in (("iris.csv", "species"), (table(folder, wide, "wide.csv"), "label")):
        sizes = []
        for budget in (20, 40, 45, 52, 60, 75, 90, 130):
            options = ("--bytes", budget, *QUICK, "--test-size", "0", "-o", tmp_path / "model.slim", "--json")
            code, out, err = run("train", name, "-t", target, *options)
            sizes.append(json.loads(out)["bytes"] if code == 0 else 0)
            assert sizes[-1] <= budget
            assert code == 0 or "the smallest model, of 1 vector, takes" in err
        assert sizes == sorted(sizes)
        vector = 10 if target == "species" else 11
        assert sizes[-1] > 130 - vector  # all that another vector leaves


def test_the_same_command_gives_the_same_file(trained, tmp_path):
    trained("iris.csv", "-t", "species")
    first = (tmp_path / "model.slim").read_bytes()
    trained("iris.csv", "-t", "species")
    assert (tmp_path / "model.slim").read_bytes() == first


def test_quiet(run, tmp_path):
    options = ("-t", "churned", "--drop", "customer", *IRIS, "-o", tmp_path / "m.slim", "--quiet")
    assert run("train", "customers.csv", *options) == (0, "", "")


def test_json_is_all_there_is_on_standard_output(run, folder):
    """Of every command; predictions are in it where no file is given."""
    for arguments in (
        ("predict", "churn.slim", "customers.parquet"),
        ("score", "churn.slim", "customers.csv"),
        ("info", "churn.slim"),
        ("export", "iris.slim", "--c", "iris.h"),
    ):
        code, out, _ = run(*arguments, "--json")
        assert code == 0
        assert isinstance(json.loads(out), dict)
    assert len(json.loads(run("predict", "iris.slim", "iris.csv", "--json")[1])["predictions"]["prediction"]) == 150


def test_export_to_integers(run, folder):
    """Rows with labels refit the coefficients."""
    code, out, err = run("export", "iris.slim", "--c", "iris8.h", "--int8", "--data", "iris.csv", "--json")
    assert code == 0, err
    assert json.loads(out)["dtype"] == "int8"
    assert json.loads(out)["report"]["rows"] == 150
    assert "iris8_predict" in (folder / "iris8.h").read_text()
    assert run("export", "iris.slim", "--c", "iris9.h", "--int8", "--bytes", "5000")[0] == 0
    code, _, err = run("export", "iris.slim", "--c", "iris9.h", "--int8", "--bytes", "30")
    assert (code, "max_bytes=30 is too little: the model takes" in " ".join(err.split())) == (1, True)
    assert run("export", "iris.slim", "--onnx", "iris.onnx", "--bytes", "30")[0] == 2


def test_a_compressed_model_without_names(run, tmp_path):
    """A machine that was fitted to an array takes as many columns as it has inputs, in their order."""
    from sklearn.svm import SVR

    data = iris()
    svr = SVR().fit(data.iloc[:, :3].to_numpy(), data.petal_width)
    (tmp_path / "svr.pkl").write_bytes(pickle.dumps(svr))
    path = tmp_path / "svr.slim"
    assert run("compress", tmp_path / "svr.pkl", "--trust", "-m", "0.3", "-o", path)[0] == 0
    data.iloc[:, :4].to_csv(tmp_path / "four.csv", index=False)
    found = json.loads(run("score", path, tmp_path / "four.csv", "-t", "petal_width", "--json")[1])
    small = slimsvm.load(path)
    assert found["r2"] == pytest.approx(small.score(data.iloc[:, :3].to_numpy(), data.petal_width))
    code, _, err = run("predict", path, tmp_path / "four.csv")
    assert (code, "takes 3 inputs" in err) == (1, True)
