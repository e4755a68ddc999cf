"""The command through its real entry point: a process for each subcommand, as a shell starts it."""

from __future__ import annotations

import importlib.metadata
import json
import os
import pickle
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import slimsvm
from command import IRIS, QUICK, iris, process, write_files
from slimsvm.cli import main


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_files(tmp_path_factory.mktemp("command"))


@pytest.fixture(scope="module")
def trained(folder):
    """What ``slimsvm train`` said, as JSON; the model is in iris.slim."""
    done = process(
        folder, "train", "iris.csv", "--target", "species", *IRIS, "--probability", "-o", "iris.slim", "--json"
    )
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def encoded(folder):
    """A model with categories and missing values, in churn.slim."""
    options = ("--target", "churned", "--drop", "customer", *QUICK, "--vectors", "8", "-o", "churn.slim")
    done = process(folder, "train", "customers.csv", *options)
    assert done.returncode == 0
    assert done.stderr == "note: column 'country' has the same value in all rows: not used\n"
    return done.stdout


def test_train(folder, trained):
    """The file holds what the same steps in Python give, on all rows; the report is true of it."""
    # The table from the file: a mean has other last digits where columns lie otherwise in memory.
    data = pd.read_csv(folder / "iris.csv")
    X, y = data.drop(columns="species"), data.species
    ours = slimsvm.SlimSVC(n_vectors=6, C=10, gamma=0.3, scales="fixed", probability=True)
    model, expected = slimsvm.load(folder / "iris.slim"), make_pipeline(StandardScaler(), ours).fit(X, y)
    assert (model.decision_function(X) == expected.decision_function(X)).all()
    assert trained["vectors"] == 6
    assert trained["rows"] == 150
    assert trained["classes"] == {"setosa": 50, "versicolor": 50, "virginica": 50}
    assert trained["held_out"]["rows"] == 38
    assert trained["held_out"]["error"] < trained["held_out"]["majority_error"]
    about = slimsvm.persistence.describe(folder / "iris.slim")["metadata"]
    assert about["target"] == "species"
    assert [column["name"] for column in about["inputs"]] == list(X.columns)
    assert about["command"].startswith("slimsvm train iris.csv")
    assert about["versions"]["slimsvm"] == slimsvm.__version__


def test_train_for_people(encoded):
    for words in ("300", "8 from 5 columns", "no (", "median for missing numbers: age", "held out", "churn.slim"):
        assert words in encoded


def test_predict(folder, trained):
    """Predictions are Python's, whatever the order of the columns; a pipe works."""
    done = process(
        folder, "predict", "iris.slim", "shuffled.csv", "--proba", "--keep", "species", "-o", "out.csv", "--json"
    )
    assert done.returncode == 0
    assert json.loads(done.stdout)["rows"] == 150
    found, model = pd.read_csv(folder / "out.csv"), slimsvm.load(folder / "iris.slim")
    shuffled = pd.read_csv(folder / "shuffled.csv")
    X = shuffled[list(iris().columns[:4])]
    assert list(found.prediction) == list(model.predict(X))
    assert list(found.species) == list(shuffled.species)
    shares = found[[f"probability_{name}" for name in model.classes_]]
    assert np.allclose(shares, model.predict_proba(X), rtol=1e-12)
    done = process(folder, "predict", "iris.slim", "-", stdin=(folder / "shuffled.csv").read_text())
    assert done.stdout.split() == ["prediction", *found.prediction]
    assert done.stderr == ""


def test_score(folder, trained):
    done = process(folder, "score", "iris.slim", "iris.csv", "--json")
    found, data = json.loads(done.stdout), iris()
    error = 1 - slimsvm.load(folder / "iris.slim").score(data.drop(columns="species"), data.species)
    assert found["error"] == pytest.approx(error)
    assert np.trace(found["confusion"]) == round(150 * (1 - error))
    assert found["log_loss"] > 0


def test_frontier(folder):
    """Report, picture and model; the model is one of those in the table, and the report has the command's reason."""
    pytest.importorskip("matplotlib")
    files = ("--html", "report.html", "--plot", "sizes.png", "-o", "chosen.slim")
    options = ("--sizes", "4,8", "--within", "0.1", *QUICK, *files, "--json")
    done = process(folder, "frontier", "iris.csv", "-t", "species", *options)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [row["size"] for row in found["sizes"]] == [4, 8]
    assert slimsvm.load(folder / "chosen.slim")[-1].n_vectors_ == found["chosen"]["vectors"]
    assert found["full"]["vectors"] > 8
    page = (folder / "report.html").read_text()
    assert page.lower().startswith("<!doctype html>")
    assert "slimsvm frontier iris.csv" in page
    assert f"{found['why']}." in page
    assert [row["chosen"] for row in found["sizes"]].index(True) == (4, 8).index(found["chosen"]["vectors"])
    assert (folder / "sizes.png").read_bytes()[1:4] == b"PNG"


def test_compress(folder):
    """A pickle, once it is trusted; the small model is what `compress` gives."""
    data = iris()
    X, y = data.drop(columns="species"), data.species
    svc = make_pipeline(StandardScaler(), SVC(C=10)).fit(X, y)
    (folder / "svc.pkl").write_bytes(pickle.dumps(svc))
    done = process(folder, "compress", "svc.pkl", "--vectors", "6", "--trust", "-o", "small.slim")
    assert done.returncode == 0, done.stderr
    assert "vectors -> 6" in done.stdout
    small, expected = slimsvm.load(folder / "small.slim"), slimsvm.compress(svc, 6)
    assert (small.decision_function(X) == expected.decision_function(X)).all()


@pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
def test_export_to_c(folder, encoded):
    """Header and example compile; the header says how its inputs are made, and they give Python's answers."""
    done = process(folder, "export", "churn.slim", "--c", "my-churn.h", "--example", "main.c")
    assert done.returncode == 0, done.stderr
    assert "x[1] = member" in done.stderr
    assert "1 where city is missing, else 0" in (folder / "my-churn.h").read_text()
    flags = ["-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror"]
    subprocess.run(["gcc", *flags, "main.c", "-lm", "-o", "example"], cwd=folder, check=True)
    subprocess.run(["./example"], cwd=folder, check=True, capture_output=True)
    model = slimsvm.load(folder / "churn.slim")
    columns = [column["name"] for column in slimsvm.persistence.describe(folder / "churn.slim")["metadata"]["inputs"]]
    rows = pd.read_csv(folder / "customers.csv")[columns].fillna({"city": ""})[:50]
    inputs = model["encode"].transform(rows).astype(np.float32)
    values = ",".join(f"{value:.8e}f" for value in inputs.ravel())
    (folder / "check.c").write_text(
        f'#include <stdio.h>\n#include "my-churn.h"\nstatic const float x[50][{inputs.shape[1]}] = {{{values}}};\n'
        'int main(void) { for (int i = 0; i < 50; ++i) printf("%d\\n", my_churn_predict(x[i])); }\n'
    )
    subprocess.run(["gcc", "-std=c99", "-Wno-missing-braces", "check.c", "-lm", "-o", "check"], cwd=folder, check=True)
    numbers = subprocess.run(["./check"], cwd=folder, check=True, capture_output=True, text=True).stdout.split()
    said, clear = model.classes_[np.array(numbers, dtype=int)], np.abs(model.decision_function(rows)) > 1e-3
    assert clear.mean() > 0.9
    assert list(said[clear]) == list(model.predict(rows)[clear])


def test_export_to_onnx(folder, encoded):
    """The whole pipeline: a column is an input, with text for categories."""
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("skl2onnx")
    done = process(folder, "export", "churn.slim", "--onnx", "churn.onnx", "--json")
    assert done.returncode == 0, done.stderr
    session = runtime.InferenceSession(folder / "churn.onnx", providers=["CPUExecutionProvider"])
    data = pd.read_csv(folder / "customers.csv")
    text = {"city", "plan"}
    given = {
        one.name: data[one.name].fillna("").to_numpy(object)[:, None]
        if one.name in text
        else data[one.name].to_numpy(np.float32)[:, None]
        for one in session.get_inputs()
    }
    labels = session.run(["label"], given)[0]
    model = slimsvm.load(folder / "churn.slim")
    rows = data.fillna({"city": ""})
    clear = np.abs(model.decision_function(rows)) > 1e-3
    assert clear.mean() > 0.9
    assert list(labels[clear]) == list(model.predict(rows)[clear])


def test_info(folder, trained):
    said = process(folder, "info", "iris.slim").stdout
    for words in ("sepal_length", "species", "setosa", "SlimSVC", "slimsvm train iris.csv", slimsvm.__version__):
        assert words in said


def test_help(folder):
    said = process(folder, "--help")
    assert said.returncode == 0
    for command in ("train", "predict", "score", "frontier", "compress", "export", "info"):
        assert f" {command} " in said.stdout
    assert "Exit codes" in said.stdout
    assert "--install-completion" in said.stdout


def test_shell_completion(folder):
    asked = {"_SLIMSVM_COMPLETE": "complete_bash", "COMP_WORDS": "slimsvm tr", "COMP_CWORD": "1"}
    assert process(folder, **asked).stdout.split() == ["train"]


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["train", "--help"], ["--no-such-option"], []])
def test_what_needs_no_data_loads_no_numbers(folder, arguments):
    """Without arguments the shell asks for completions."""
    heavy = ["numpy", "scipy", "sklearn", "joblib", "pandas", "matplotlib", "slimsvm._core"]
    script = (
        "import atexit, sys\n"
        f"atexit.register(lambda: print('loaded', sorted({{*{heavy}}} & sys.modules.keys())))\n"
        f"from slimsvm.cli import main; sys.exit(main({arguments}))"
    )
    asked = {} if arguments else {"_SLIMSVM_COMPLETE": "complete_bash", "COMP_WORDS": "slimsvm tr", "COMP_CWORD": "1"}
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=folder,
        env={**os.environ, **asked},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout.splitlines()[-1] == "loaded []", done.stderr


def test_wrong_use_as_a_process(folder):
    done = process(folder, "info", "no.slim")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "slimsvm: no.slim: No such file or directory\n"


def test_a_reader_that_stops(folder, trained):
    """``slimsvm predict … | head -1`` is no error to talk about."""
    if not (shutil.which("sh") and shutil.which("head")):
        pytest.skip("there is no shell here")
    script = f"{sys.executable} -m slimsvm predict iris.slim big.csv | head -1"
    pd.concat([iris()] * 400).to_csv(folder / "big.csv", index=False)
    done = subprocess.run(["sh", "-c", script], cwd=folder, capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr) == ("prediction\n", "")


def test_progress_on_a_terminal(folder):
    """A bar on standard error; standard output stays one JSON object."""
    pty = pytest.importorskip("pty", reason="there are no such terminals here")
    inside, outside = pty.openpty()
    command = [
        sys.executable,
        "-m",
        "slimsvm",
        "train",
        "iris.csv",
        "-t",
        "species",
        "-m",
        "4",
        "-o",
        "seen.slim",
        "--json",
    ]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=outside) as started:
        os.close(outside)
        shown = b""
        while True:
            try:
                part = os.read(inside, 4096)
            except OSError:  # how Linux says that the other end is closed
                break
            if not part:
                break
            shown += part
        assert started.stdout is not None
        assert json.loads(started.stdout.read())["vectors"] == 4
    assert b"rows held out" in shown
    assert b"search" in shown


def test_without_typer(folder):
    """One line says what to install."""
    script = "import sys; sys.modules['typer'] = None; from slimsvm.cli import main; sys.exit(main(['--help']))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (1, "")
    assert "pip install 'slimsvm[cli]'" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_the_installed_command_is_this_function():
    found = [one for one in importlib.metadata.entry_points(group="console_scripts") if one.name == "slimsvm"]
    if not found:
        pytest.skip("slimsvm is not installed with its command")
    assert found[0].load() is main


def test_the_page_about_it(folder, tmp_path, monkeypatch, capsys):
    """The tour runs as it is written, and shows what the page shows, but for times and numbers."""
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).parent.parent / "docs" / "command.md").read_text()
    for kind, block in re.findall(r"^```(python|console)\n(.*?)^```", page, flags=re.DOTALL | re.MULTILINE):
        if kind == "python":
            exec(compile(block, "command.md", "exec"), {})
            continue
        for typed, shown in re.findall(r"^\$ slimsvm (.*?)\n(.*?)(?=^\$|\Z)", block, flags=re.DOTALL | re.MULTILINE):
            assert main(shlex.split(typed)) == 0
            said = capsys.readouterr().out
            for line in shown.splitlines():
                assert re.split(r"  +|[\d:{]", line.strip())[0] in said
