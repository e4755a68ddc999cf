"""
C for a device
==============

:func:`~slimsvm.to_c` writes a fitted model as one C99 header: tables of constants and a few small functions, without
malloc and without any library but ``expf``; in eight bits without that. Here it is written, compiled and run.
"""

import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

from slimsvm import SlimSVC, compress, to_c

X, y = load_digits(return_X_y=True)
X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)
svc = SVC(C=10).fit(X, y)
slim = SlimSVC(30, C=10, gamma="scale", scales="fixed").fit(X, y)

# %%
# A full machine and a slim one, both in float32 and in eight bits. (Asked for all vectors, ``compress`` keeps the
# machine as it is.)

full = compress(svc, len(svc.support_))
headers = {
    "full, float32": to_c(full, name="digits", X=X_test),
    "full, int8": to_c(full, name="digits", dtype="int8", X=X_test),
    "slim, float32": to_c(slim, name="digits", X=X_test),
    "slim, int8": to_c(slim, name="digits", dtype="int8", X=X_test),
}
print(headers["slim, int8"].report)

# %%
# What a program calls: labels of rows in floats, or in the integers of a sensor.

print("\n".join(line for line in headers["slim, int8"].splitlines() if " digits_predict" in line and line[0] == "s"))

# %%
# Each is compiled with a program that reads rows and prints labels (it comes with the header), and run on rows that
# no model has seen. Without a C compiler this step is left out. Time is that of the whole program: reading 64 numbers
# a row, and printing, too.

compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)


def answers(header: str, rows: np.ndarray) -> tuple[np.ndarray, float]:
    """Labels that the compiled header gives, and microseconds a row."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "digits.h").write_text(header)
        (Path(folder) / "main.c").write_text(header.example)
        subprocess.run([compiler, "-std=c99", "-O2", "main.c", "-lm", "-o", "digits"], cwd=folder, check=True)
        text = "\n".join(" ".join(f"{number:.9g}" for number in row) for row in rows)
        start = time.perf_counter()
        done = subprocess.run([Path(folder) / "digits"], input=text, capture_output=True, text=True, check=True)
        seconds = time.perf_counter() - start
    return np.array([int(line.split()[0]) for line in done.stdout.splitlines()]), 1e6 * seconds / len(rows)


wrong, times, same = {}, {}, {}
for name, header in headers.items() if compiler else ():
    labels, times[name] = answers(header, X_test)
    wrong[name] = np.mean(labels != y_test)
    same[name] = np.mean(labels == (full if name.startswith("full") else slim).predict(X_test))
    print(f"{name:14} {wrong[name]:.1%} wrong, {same[name]:.1%} as in Python")

# %%
# Bytes, beside the flash of two boards. Code comes on top, about a kilobyte.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained", width_ratios=(1.6, 1))
names = list(headers)
flash = {name: header.report.flash for name, header in headers.items()}
bars = left.barh(names, list(flash.values()), color=["C7", "C7", "C0", "C0"])
left.bar_label(bars, [f"{count:,}" for count in flash.values()], label_type="center", color="white")
left.set(xscale="log", xlim=(1e3, 5e5), xlabel="bytes of tables")
for board, size in (("ATmega328P", 32 * 1024), ("Cortex-M4, 256 KB", 256 * 1024)):
    left.axvline(size, color="C3", ls=":", lw=1.5)
    left.text(size, -0.75, board, ha="center", va="bottom", fontsize=8)
left.invert_yaxis()
if compiler:
    bars = right.barh(names, list(times.values()), color=["C7", "C7", "C0", "C0"])
    right.bar_label(bars, [f"{value:.0f}" for value in times.values()], padding=4)
    right.set(xlabel="µs a row, on this computer", xlim=(0, 1.2 * max(times.values())))
    right.invert_yaxis()
    right.set_yticks([])
else:
    right.set_axis_off()
for ax in (left, right):
    ax.spines[["top", "right"]].set_visible(False)
