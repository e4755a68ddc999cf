"""Files for the tests of the command, and ways to run it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import dump_svmlight_file, load_iris

# Given settings: nothing is searched, so that a test takes no time.
QUICK = ("--C", "10", "--gamma", "0.3", "--scales", "fixed")
IRIS = (*QUICK, "--vectors", "6")


def process(folder, *arguments, stdin=None, **environment):
    """The command as a process of its own, as a shell starts it."""
    return subprocess.run(
        [sys.executable, "-m", "slimsvm", *map(str, arguments)],
        cwd=folder,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "COLUMNS": "100"} | environment,
    )


def iris():
    data = load_iris(as_frame=True)
    frame = data.frame.rename(columns=lambda name: name.replace(" (cm)", "").replace(" ", "_"))
    frame["species"] = data.target_names[frame.pop("target")]
    return frame


def customers(n=300):
    """Numbers and categories, some of them missing; a truth value, a constant, an identifier."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "customer": [f"C{k:04d}" for k in rng.permutation(n)],
            "age": rng.integers(18, 80, n).astype(float),
            "income": rng.lognormal(10, 0.5, n).round(2),
            "city": rng.choice(["Rome", "Oslo", "Bonn"], n),
            "plan": rng.choice(["a", "b"], n),
            "member": rng.random(n) < 0.4,
            "country": "Utopia",
        }
    )
    frame["churned"] = np.where(frame.age / 40 + (frame.city == "Oslo") + rng.normal(0, 0.2, n) > 1.6, "yes", "no")
    frame.loc[rng.random(n) < 0.1, "age"] = np.nan
    frame.loc[rng.random(n) < 0.1, "city"] = None
    return frame


def write_files(folder: Path) -> Path:
    """Data in all formats, and files that are no data."""
    flowers, people = iris(), customers()
    flowers.to_csv(folder / "iris.csv", index=False)
    flowers.sample(frac=1, random_state=0).iloc[:, ::-1].to_csv(folder / "shuffled.csv", index=False)
    people.to_csv(folder / "customers.csv", index=False)
    people.to_parquet(folder / "customers.parquet")
    numbered = pd.DataFrame(flowers.iloc[:, :4].to_numpy(), columns=["1", "2", "3", "4"])
    numbered["label"] = np.unique(flowers.species, return_inverse=True)[1]
    numbered.to_csv(folder / "numbered.csv", index=False)
    numbered.to_csv(folder / "semicolons.csv", index=False, sep=";")
    numbered.to_csv(folder / "numbered.tsv", index=False, sep="\t")
    numbered.to_csv(folder / "numbered.csv.gz", index=False)
    numbered.to_parquet(folder / "numbered.parquet")
    dump_svmlight_file(numbered.iloc[:, :4].to_numpy(), numbered.label, str(folder / "numbered.svm"), zero_based=False)
    (folder / "empty.csv").write_text("")
    (folder / "names_only.csv").write_text("a,b,label\n")
    (folder / "one_class.csv").write_text("a,b,label\n" + "".join(f"{k},{k % 3},1\n" for k in range(20)))
    (folder / "few.csv").write_text("a,label\n1,0\n2,1\n3,0\n4,1\n")
    (folder / "ragged.csv").write_text("a,b,label\n" + "1,2,0\n" * 10 + "1,2,3,4\n")
    (folder / "no_names.csv").write_text("".join(f"{k / 3},{k % 5},{k % 2}\n" for k in range(40)))
    (folder / "latin.csv").write_bytes("größe,label\n1,0\n2,1\n".encode("latin-1"))
    (folder / "numbers.csv").write_text("a,label\n" + "".join(f"{k},{k / 7:.4f}\n" for k in range(50)))
    (folder / "twice.csv").write_text("a,a,label\n1,2,0\n")
    (folder / "data.xyz").write_text("a,b\n1,2\n")
    (folder / "not_a_model.slim").write_bytes(b"PK\x03\x04 this is something else")
    (folder / "not_parquet.parquet").write_bytes(b"this is no Parquet file")
    (folder / "not.svm").write_text("hello world\n")
    return folder
