"""Headers compiled and run: what the C of a model says of rows."""

from __future__ import annotations

import shutil
import subprocess

import numpy as np
import pytest

STRICT = ["-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror"]
COMPILERS = {"gcc": ["gcc", "-std=c99"], "clang": ["clang", "-std=c99"], "g++": ["g++", "-std=c++11"]}

# Prints the number of the class and all numbers that the header gives for a row.
MAIN = """
#include <stdio.h>
#include <stdlib.h>
#include "model.h"

int main(void)
{
    static float x[MODEL_INPUTS];
    for (;;) {
        for (int i = 0; i < MODEL_INPUTS; ++i) {
            if (fread(&x[i], sizeof x[i], 1, stdin) != 1) return 0;
        }
        %s
        printf("\\n");
    }
}
"""
PREDICT = 'printf("%d", model_predict(x));'
VALUES = (
    "{ float f[MODEL_VALUES]; model_values(x, f); "
    'for (int o = 0; o < MODEL_VALUES; ++o) printf(" %.9g", (double)f[o]); }'
)
INTEGERS = (
    "{ int16_t u[MODEL_USED]; int32_t v[MODEL_VALUES]; model_to_int16(x, u); model_values_int16(u, v); "
    'for (int o = 0; o < MODEL_VALUES; ++o) printf(" %ld", (long)v[o]); }'
)
READ_VALUE = (
    "{ int16_t r[MODEL_INPUTS]; for (int i = 0; i < MODEL_INPUTS; ++i) r[i] = (int16_t)x[i]; "
    'printf(" %ld", (long)model_predict_readings(r)); }'
)
DECISION = (
    "{ float f[MODEL_OUTPUTS]; model_decision(x, f); "
    'for (int o = 0; o < MODEL_OUTPUTS; ++o) printf(" %.9g", (double)f[o]); }'
)
PROBABILITIES = (
    "{ float p[MODEL_CLASSES]; model_probabilities(x, p); "
    'for (int c = 0; c < MODEL_CLASSES; ++c) printf(" %.9g", (double)p[c]); }'
)
READINGS = (
    "{ int16_t r[MODEL_INPUTS]; for (int i = 0; i < MODEL_INPUTS; ++i) r[i] = (int16_t)x[i]; "
    'printf(" %d", model_predict_readings(r)); }'
)


def compiler(name):
    """Command of a compiler; the test is skipped where it is not there."""
    command = COMPILERS[name]
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    return command


def build(folder, header, statements, name="gcc", flags=("-O1",)):
    """The program over a header, which must compile without a warning."""
    command = compiler(name)
    (folder / "model.h").write_text(header)
    source = folder / ("main.cpp" if name == "g++" else "main.c")
    source.write_text(MAIN % "\n        ".join(statements))
    program = folder / "program"
    done = subprocess.run(
        [*command, *STRICT, *flags, str(source), "-o", str(program), "-lm"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return program


def answers(program, X):
    """A row of numbers for each row."""
    rows = np.ascontiguousarray(X, dtype=np.float32)
    done = subprocess.run([str(program)], input=rows.tobytes(), capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr.decode()
    found = np.array([[float(word) for word in line.split()] for line in done.stdout.decode().splitlines()])
    assert len(found) == len(rows)
    return found
