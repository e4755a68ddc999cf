"""Docstrings of parameters and attributes that estimators share, written once."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from ..problem import kernels
from ..quantization.quantize import FIXED_POINT_FORMS

T = TypeVar("T")

SHARED = {
    "fit_X": """
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training rows; for ``kernel="precomputed"`` the square kernel matrix.""",
    "fit_X_anywhere": """
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training rows; for ``kernel="precomputed"`` the square kernel matrix. Also labelled rows of files, see
            `slimsvm.rows`, dask arrays and dataframes, and arrays on a device, whose rows stay where they are.""",
    "fit_labels": """
        y : array-like of shape (n_samples,)
            Class labels, of any type.""",
    "fit_labels_anywhere": """
        y : array-like of shape (n_samples,)
            Class labels, of any type. Left out where the rows have their labels with them.""",
    "fit_targets_anywhere": """
        y : array-like of shape (n_samples,), or (n_samples, n_outputs) of several targets
            Numbers to regress on. Left out where the rows have them with them.""",
    "fit_weights": """
        sample_weight : array-like of shape (n_samples,), optional
            Weight 0 is the same as leaving the row out, weight k as k copies of it.""",
    "fit_classifier": """
        Parameters
        ----------
        <fit_X>
        <fit_labels>
        <fit_weights>

        Returns
        -------
        self""",
    "fit_classifier_anywhere": """
        Parameters
        ----------
        <fit_X_anywhere>
        <fit_labels_anywhere>
        <fit_weights>

        Returns
        -------
        self""",
    "fit_regressor_anywhere": """
        Parameters
        ----------
        <fit_X_anywhere>
        <fit_targets_anywhere>
        <fit_weights>

        Returns
        -------
        self""",
    "partial_fit": """
        Some rows of the stream are kept, ``memory`` at most, and the model is refitted to them. What a call costs
        does not grow with the rows that came before. ``objective_`` and ``duality_gap_`` are about the rows in memory,
        not about the whole stream.""",
    "scales": """
        scales : {"search", "fixed", "learned"}, default="search"
            One scale for each input, learned with the vectors, or the same for all. Inputs then count by their use; the
            scales are in ``kernel_.scales``.""",
    "max_bytes": """
        max_bytes : int, optional
            Bytes that the model may take on a device, in the place of ``n_vectors``: 8-bit vectors, 16-bit
            coefficients, and all else that it needs (`slimsvm.export.quantize`). The vectors are then numbers that 8
            bits can hold, and the coefficients the best over them.""",
    "support_of_rows_": """
        support_ : ndarray of shape (n_vectors_,)
            Rows of the training set that `vectors_` are; only where they are rows.""",
    "C": """
        C : float, default=1.0
            Cost of slacks, above 0.""",
    "kernel": """
        kernel : {<names>, "precomputed"}, function or kernel, default="rbf"
            A function gets two sets of rows and returns the matrix of kernel values.""",
    "kernel_of_rows": """
        kernel : {<names, the default first>}, function or kernel, default="rbf"
            A function gets two sets of rows and returns the matrix of kernel values.""",
    "kernel_to_learn": """
        kernel : {<names, those to learn first>, "precomputed"}, function or kernel, default="rbf"
            Vectors are learned with the first <number to learn>, or a kernel with a method ``pullback``; the others
            need a basis of training rows.""",
    "gamma": """
        gamma : {"scale", "auto"} or float, default="scale"
            Factor in the <with gamma> kernels. "scale": ``1 / (n_features * X.var())``;
            "auto": ``1 / n_features``.""",
    "gamma_to_search": """
        gamma : {"search", "scale", "auto"} or float, default="search"
            Factor in the <with gamma> kernels. "scale": ``1 / (n_features * X.var())``;
            "auto": ``1 / n_features``.""",
    "degree": """
        degree : int, default=3
            Degree of the poly kernel.
        coef0 : float, default=0.0
            Constant in the <with coef0> kernels.""",
    "degree_first": """
        degree : int, default=3
            Degree of the poly kernel.
        gamma : {"scale", "auto"} or float, default="scale"
            Factor in the <with gamma> kernels. "scale": ``1 / (n_features * X.var())``;
            "auto": ``1 / n_features``.
        coef0 : float, default=0.0
            Constant in the <with coef0> kernels.""",
    "family": """
        shrinking : bool, default=True
            Accepted, and without effect: the solver works on few variables at a time anyway.
        tol : float, default=1e-3
            The fit ends when the relative duality gap and the violation of the optimality conditions are at most this.
        cache_size : float, default=200
            Megabytes for kernel rows.
        verbose : bool, default=False
            Show progress on standard error.
        max_iter : int, default=-1
            Most SMO steps for each problem; -1: no limit.
        n_jobs : int, optional
            Threads for the fit and for predictions. None: one, or as many as joblib's ``parallel_config`` says;
            -1: all cores.""",
    "family_classes": """
        probability : bool, default=False
            Fit a logistic (of several classes, softmax) layer for `predict_proba`, too, on decision values of rows
            held out. `predict` stays what it is, and gives the likeliest class.
        class_weight : dict or "balanced", optional
            Factors of C for each class.
        decision_function_shape : {"ovr", "ovo"}, default="ovr"
            Scores for each class, or for each pair of classes.
        break_ties : bool, default=False
            Of classes with equally many votes: the one with the highest score, rather than the first.
        random_state : int, RandomState or None, default=None
            Accepted, and without effect: nothing is drawn.""",
    "family_layout": """
        support_ : ndarray of shape (n_SV,)
            Rows of the training set that are vectors.
        support_vectors_ : ndarray or sparse matrix of shape (n_SV, n_features_in_)
            Those rows; empty where the kernel is precomputed.
        dual_coef_ : ndarray or sparse matrix of shape (n_classes - 1, n_SV)
            Coefficients of the vectors, one row but for several classes.
        intercept_ : ndarray of shape (n_outputs,)
        coef_ : ndarray or sparse matrix of shape (n_outputs, n_features_in_)
            Weights of the inputs, with a linear kernel only.
        n_support_ : ndarray of shape (n_classes,)
            Vectors of each class; of all rows where there are no classes.
        vectors_ : ndarray or sparse matrix of shape (n_vectors_, n_features_in_)
            The same vectors.
        vector_coef_ : ndarray of shape (n_outputs, n_vectors_)
            Their coefficients, a row for each output: ``f = vector_coef_ @ k(vectors_, x) + intercept_``.
        n_vectors_ : int
        fit_status_ : int
            0 if ``tol`` was reached, else 1, after a warning.
        shape_fit_ : tuple of int
            Shape of the training set.
        <model_bytes_>""",
    "family_class_layout": """
        classes_ : ndarray of shape (n_classes,)
        class_weight_ : ndarray of shape (n_classes,)
            Factors of C for each class.""",
    "family_objective": """
        objective_ : ndarray of shape (1,)
            Value of the problem that is minimised, at the model that is returned: an upper bound on the optimum.
            ``duality_gap_`` says how far that can be, rounding errors of this value included.
        duality_gap_ : ndarray of shape (1,)
            Proof of the solution: the objective is at most this fraction above the best possible one.
        n_iter_ : int
            Steps of the solver.""",
    "class_weight": """
        class_weight : dict or "balanced", optional
            How often the rows of a class count: a factor of C in sums of slacks.""",
    "multi_class": """
        multi_class : {"ovo", "ovr"}, default="ovo"
            More than two classes: a binary problem for each pair of classes, or for each class against the others.
        decision_function_shape : {"ovr", "ovo"}, default="ovr"
            Scores for each class, or for each pair of classes (only where ``multi_class="ovo"``).""",
    "probability": """
        probability : bool, default=False
            Fit a layer for `predict_proba` over the vectors, too: a logistic output, or softmax for several classes.
            Its cost is chosen by log-loss on rows that did not shape the vectors. `predict` stays what it is.""",
    "dual_tol": """
        tol : float, default=1e-3
            The fit ends when the relative duality gap and the violation of the optimality conditions are at most this.
        max_iter : int, default=-1
            Most SMO steps for each binary problem; -1: no limit.
        cache_size : float, default=400
            Megabytes for kernel rows.
        precision : {"float32", "float64"}, default="float32"
            Of the kernel rows that the solver works on. The solution is certified in float64 either way, and
            the solver turns to float64 rows by itself where float32 is not enough.""",
    "primal_tol": """
        tol : float, default=1e-6
            Relative duality gap to be reached by the coefficients over the vectors.
        max_iter : int, default=100
            Most iterations of the solver for them.
        cache_size : float, default=1000
            Megabytes for features; beyond, they are computed anew in each pass over the rows.""",
    "regularizer": """
        slack : {"l2", "l1"} or object of `slimsvm.losses`, default="l2"
            C/2 times the sum of squared slacks, or C times the sum of slacks.
        regularizer : {"kernel", "identity"} or object of `slimsvm.regularizers`, default="kernel"
            The norm of f in the kernel's space, or the sum of squared coefficients.""",
    "n_jobs": """
        n_jobs : int, optional
            Threads for the fit and for predictions. None: one, or as many as joblib's ``parallel_config`` says;
            -1: all cores.""",
    "random_state": """
        random_state : int, RandomState or None, default=0
            Seed of all draws: the same seed gives the same model, whatever the order of the rows. None draws anew in
            each fit. The search of `SlimSVC` for settings does not depend on it.""",
    "verbose": """
        verbose : bool, default=False
            Show progress on standard error.""",
    "vectors_": """
        classes_ : ndarray of shape (n_classes,)
        vectors_ : ndarray or sparse matrix of shape (n_vectors_, n_features_in_)
            Each vector once; row numbers of the training set where the kernel is precomputed.
        vector_coef_ : ndarray of shape (n_outputs, n_vectors_)
            ``f = vector_coef_ @ k(vectors_, x) + intercept_``; one output for two classes, one for each
            pair of classes (positive means the first of the pair) or for each class otherwise.
        intercept_ : ndarray of shape (n_outputs,)
        n_vectors_ : int
        <model_bytes_>""",
    "vectors_of_one_output": """
        vectors_ : ndarray or sparse matrix of shape (n_vectors_, n_features_in_)
        vector_coef_ : ndarray of shape (1, n_vectors_)
            ``f = vector_coef_ @ k(vectors_, x) + intercept_``.
        intercept_ : ndarray of shape (1,)
        n_vectors_ : int""",
    "n_vectors_kept": """
        n_vectors : int, float or "auto", default=20
            How many vectors to keep at most; a fraction between 0 and 1 of those that the machine has; or as few as
            reach ``agreement``. A machine that has no more is kept as it is; with a linear kernel one weight vector
            for each output is the same function.""",
    "fit_to": """
        fit_to : {"auto", "decisions", "labels"}, default="auto"
            "decisions": reproduce the fitted model's decisions. "labels": train again, on the labels or target values
            y. "auto": labels where X and y are given and have at least as many rows as the fitted model has vectors,
            else decisions.""",
    "fit_to_decisions": """
        fit_to : {"auto", "decisions"}, default="auto"
            One-class models have no labels: both reproduce the fitted model's decisions.""",
    "compress_method": """
        method : {"auto", "reduced_set", "refit", "margin", "learn"}, default="auto"
            "reduced_set": the expansion nearest to the machine in the kernel's space. "refit": its vectors, with
            coefficients fitted to X and y. "margin": the machine's own decisions are taught to it, on the rows X, or
            on the machine's vectors where there are no rows. "learn": X and y are taught to it. "auto": "learn" where
            it is fitted to labels, "margin" where to decisions.""",
    "compressed_probability": """
        probability : bool, default=False
            Fit a layer for `predict_proba` over the vectors, too: a logistic output, or softmax for several classes. It
            needs X and y. Its cost is chosen by log-loss on rows that the compression, done again without them, has
            not seen; the machine itself may have. `predict` stays what it is.""",
    "agreement": """
        agreement : float, default=0.99
            For ``n_vectors="auto"``: the part of the known rows (X, or the machine's vectors) that is to have the same
            answer as before; R^2 between the values for regression.""",
    "compression_": """
        compression_ : `slimsvm.compression.Compression`
            Report: vectors and bytes (float32) before and after, agreement with the original, distance, predicted
            speed-up.""",
    "support_": """
        support_ : ndarray of shape (n_vectors_,)
            Rows of the training set that `vectors_` are; of equal rows of a class, the first.""",
    "objective_": """
        objective_ : ndarray of shape (n_outputs,)
            Value of the problem that is minimised, at the model that is returned: an upper bound on the optimum.
            ``duality_gap_`` says how far that can be, rounding errors of this value included.
        duality_gap_ : ndarray of shape (n_outputs,)
            Proof of the solution: the objective is at most this fraction above the best possible one.
        n_iter_ : ndarray of shape (n_outputs,)
            Steps or iterations of the solver.""",
    "small_objective_": """
        objective_ : ndarray of shape (n_outputs,)
            Value of the problem that is minimised over coefficients and bias, the vectors given: an upper bound on
            the optimum. ``duality_gap_`` says how far that can be, rounding errors of this value included.
        duality_gap_ : ndarray of shape (n_outputs,)
            Proof of the coefficients: the objective is at most this fraction above the best possible one over these
            vectors. It says nothing of the vectors themselves.
        n_iter_ : ndarray of shape (n_outputs,)
            Iterations of the solver.
        regularizer_ : object of `slimsvm.regularizers`
            The regulariser as used: `objective_` and `duality_gap_` are about it. Where vectors are learned, its
            ``epsilon`` is a small number, not 0: ``R = k(Z, Z) + epsilon I``.""",
    "probability_coef_": """
        probability_coef_ : ndarray of shape (n_outputs, n_vectors_)
            The layer behind `predict_proba`, with ``probability=True``: log-odds of ``classes_[1]`` for two classes,
            one row for each class otherwise.
        probability_intercept_ : ndarray of shape (n_outputs,)
        probability_C_ : float
            Cost of the layer, chosen on rows held out.
        probability_gap_ : float
            Relative duality gap of the layer.""",
    "model_bytes_": """
        model_bytes_ : int
            Bytes of the model on a device, as `slimsvm.export.quantize` makes it; only with the kernels
            <fixed point>.""",
    "learning_": """
        learning_iter_ : int
            Iterations of learning, where vectors were learned.
        learning_gain_left_ : float
            What learning may have left: the relative gain of its last quarter of iterations where their limit ended it
            (with a warning from 0.02 on), else 0.""",
    "stream_": """
        n_samples_seen_ : int
            Rows that `fit` or all calls of `partial_fit` were given.
        stream_ : object
            Only after `partial_fit`: the rows in memory, ``stream_.memory.X``, and what else it needs to go on.
            ``objective_`` and ``duality_gap_`` are about these rows.""",
    "kernel_": """
        kernel_ : kernel object
            The kernel as used: ``kernel_.gamma`` is a number, ``kernel_.scales`` the factor of each input (1.0 where
            all inputs count the same).
        n_features_in_ : int
        feature_names_in_ : ndarray of shape (n_features_in_,)
            Where X had column names.""",
}


def _sentence(kinds: Iterable[type[kernels.Base]]) -> str:
    *others, last = kernels.in_sentence(kinds)
    return f"{', '.join(others)} and {last}"


def _quoted(order: Callable[[type[kernels.Base]], Any]) -> str:
    return ", ".join(f'"{kind.name}"' for kind in sorted(kernels.NAMED, key=order))


# What stands for lists of kernels in these texts.
KERNEL_LISTS = {
    "names": _quoted(lambda kind: 0),
    "names, the default first": _quoted(lambda kind: kind is not kernels.Gaussian),
    "names, those to learn first": _quoted(
        lambda kind: (kind not in kernels.SEMIDEFINITE, kind is not kernels.Gaussian)
    ),
    "number to learn": ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine")[
        len(kernels.SEMIDEFINITE) - 1
    ],
    "with gamma": _sentence(kind for kind in kernels.NAMED if "gamma" in kind.parameters()),
    "with coef0": _sentence(kind for kind in kernels.NAMED if "coef0" in kind.parameters()),
    "fixed point": _sentence(FIXED_POINT_FORMS),
}


def documented(cls: T) -> T:
    """Put the shared texts in the place of lines such as ``<kernel>``, and names in that of lists of kernels."""
    if cls.__doc__:  # None under python -OO
        text = cls.__doc__
        while (filled := re.sub(r"^( +)<(\w+)>$", _shared, text, flags=re.M)) != text:
            text = filled
        cls.__doc__ = re.sub(r"<([\w ,]+)>", lambda m: KERNEL_LISTS.get(m[1], m[0]), text)
    return cls


def _shared(line: re.Match[str]) -> str:
    """The text that a line such as ``<kernel>`` stands for, indented as the line is."""
    return textwrap.indent(textwrap.dedent(SHARED[line[2]]).strip("\n"), line[1])
