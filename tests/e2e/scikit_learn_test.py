"""dtf trains the same models as scikit-learn, on the same tables: linear, logistic and multi-label
regression, a linear support vector machine, and a perceptron. All but the last have one best
solution, which both must find.
Usage: scikit_learn_test.py DTF_LAUNCH

Exit 77 (skipped, with the reason) where Python lacks scikit-learn; scripts/python-env.sh
installs it.
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import warnings

try:
    import numpy
    from sklearn import datasets, linear_model, metrics, neural_network, svm
except ImportError as missing:
    print(f"SKIPPED: {sys.executable} has no {missing.name}: run scripts/python-env.sh", file=sys.stderr)
    sys.exit(77)

TRAIN, EVAL, FEATURES = 4000, 4000, 10
JOB = """job: fitted
run_dir: {folder}/run
cluster:
  ps: [localhost:auto, localhost:auto]
  worker: [localhost:auto, localhost:auto]
train:
  model:
    input: {{shape: [10]}}
    layers: {layers}
    loss: {loss}
    metrics: {metrics}
  data:
    train: {{format: csv, files: [{folder}/train.csv], {columns}}}
    eval: {{format: csv, files: [{folder}/eval.csv], {columns}}}
    batch_size: 200
  optimizer: {{adam: {{learning_rate: {{cosine: {{initial: {rate}, decay_steps: {steps}}}}}}}}}
  replication: {{mode: sync}}
  steps: {steps}
  checkpoint: {{every_steps: 100000}}
"""


def dtf(launch, features, targets, layers, loss, wanted, rate=0.05, steps=1500):
    """The output of `dtf-launch eval` after a training over 2 ps and 2 workers. Columns y0, y1, ...
    are the targets.
    """
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        names = [f"x{i}" for i in range(FEATURES)] + [f"y{i}" for i in range(targets.shape[1])]
        for part, rows in (("train", slice(0, TRAIN)), ("eval", slice(TRAIN, None))):
            table = numpy.hstack([features[rows], targets[rows]])
            numpy.savetxt(folder / f"{part}.csv", table, delimiter=",", header=",".join(names), comments="", fmt="%.9g")
        one_class = targets.shape[1] == 1 and loss != "mse"
        columns = "label_column: y0" if one_class else f"target_columns: [{', '.join(names[FEATURES:])}]"
        job = folder / "job.yaml"
        job.write_text(JOB.format(folder=folder, layers=layers, loss=loss, metrics=wanted, columns=columns, rate=rate,
                                  steps=steps))
        for command in ([launch, job, "-q"], [launch, "eval", job, "--json"]):
            done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  text=True, timeout=120)
            assert done.returncode == 0, (command, done.stdout, done.stderr)
        return json.loads(done.stdout.splitlines()[-1])


def near(what, ours, theirs, margin):
    print(f"{what}: dtf {ours:.5f}, scikit-learn {theirs:.5f}")
    assert abs(ours - theirs) <= margin, (what, ours, theirs)


def log_loss(answers, probabilities):
    """The mean over all targets, each by itself."""
    return float(-numpy.mean(answers * numpy.log(probabilities) + (1 - answers) * numpy.log(1 - probabilities)))


def check_regression(launch, random):
    features, answers = datasets.make_friedman1(TRAIN + EVAL, FEATURES, noise=1.0, random_state=int(random.integers(1000)))
    train, held_out = slice(0, TRAIN), slice(TRAIN, None)
    scaled = "normalization: {mean: [0.5], std: [0.29]}"  # the features are uniform from 0 to 1
    fitted = linear_model.LinearRegression().fit(features[train], answers[train]).predict(features[held_out])
    ours = dtf(launch, features, answers[:, None], f"[{scaled}, dense: {{units: 1}}]", "mse", "[mse, mae, r2]")
    near("linear regression, mean squared error", ours["mse"], metrics.mean_squared_error(answers[held_out], fitted), 0.02)
    near("linear regression, mean error", ours["mae"], metrics.mean_absolute_error(answers[held_out], fitted), 0.01)
    near("linear regression, R^2", ours["r2"], metrics.r2_score(answers[held_out], fitted), 0.002)
    layers = f"[{scaled}, dense: {{units: 64, activation: relu}}, dense: {{units: 64, activation: relu}}, dense: {{units: 1}}]"
    perceptron = neural_network.MLPRegressor(hidden_layer_sizes=(64, 64), learning_rate_init=0.003, max_iter=150, random_state=1)
    fitted = perceptron.fit(features[train], answers[train]).predict(features[held_out])
    ours = dtf(launch, features, answers[:, None], layers, "mse", "[r2]", rate=0.01, steps=1500)
    theirs = metrics.r2_score(answers[held_out], fitted)
    print(f"perceptron, R^2: dtf {ours['r2']:.5f}, scikit-learn {theirs:.5f}")
    assert ours["r2"] >= theirs - 0.01, (ours, theirs)


def check_classes(launch, random):
    features = random.normal(size=(TRAIN + EVAL, FEATURES))
    rule = random.normal(size=(FEATURES, 4))
    answers = (features @ rule + 2 * random.logistic(size=(TRAIN + EVAL, 4)) > 0.5).astype(int)
    train, held_out = slice(0, TRAIN), slice(TRAIN, None)
    fits = [linear_model.LogisticRegression(C=1e9, max_iter=1000).fit(features[train], answers[train, tag])
            for tag in range(4)]
    fitted = numpy.stack([fit.predict_proba(features[held_out])[:, 1] for fit in fits], axis=1)

    ours = dtf(launch, features, answers[:, :1], "[dense: {units: 1}]", "binary_crossentropy",
               "[accuracy, auc, precision, recall]")
    truth, said = answers[held_out, 0], fitted[:, 0]
    near("logistic regression, loss", ours["loss"], log_loss(truth, said), 0.001)
    near("logistic regression, accuracy", ours["accuracy"], metrics.accuracy_score(truth, said > 0.5), 0.002)
    near("logistic regression, area under the curve", ours["auc"], metrics.roc_auc_score(truth, said), 0.001)
    near("logistic regression, precision", ours["precision"], metrics.precision_score(truth, said > 0.5), 0.003)
    near("logistic regression, recall", ours["recall"], metrics.recall_score(truth, said > 0.5), 0.003)

    ours = dtf(launch, features, answers, "[dense: {units: 4}]", "binary_crossentropy", "[precision, recall]")
    near("four labels at once, loss", ours["loss"], log_loss(answers[held_out], fitted), 0.001)
    near("four labels at once, precision", ours["precision"],
         metrics.precision_score(answers[held_out], fitted > 0.5, average="micro"), 0.003)
    near("four labels at once, recall", ours["recall"],
         metrics.recall_score(answers[held_out], fitted > 0.5, average="micro"), 0.003)

    weighted = linear_model.LogisticRegression(C=1e9, max_iter=1000, class_weight={0: 1, 1: 3})
    said = weighted.fit(features[train], answers[train, 0]).predict(features[held_out])
    ours = dtf(launch, features, answers[:, :1], "[dense: {units: 1}]", "{binary_crossentropy: {positive_weight: 3}}",
               "[precision, recall]")
    near("class 1 counts three times, precision", ours["precision"], metrics.precision_score(truth, said), 0.003)
    near("class 1 counts three times, recall", ours["recall"], metrics.recall_score(truth, said), 0.003)
    ours = dtf(launch, features, answers[:, :1], "[dense: {units: 2}]",
               "{sparse_categorical_crossentropy: {class_weights: [1, 3]}}", "[accuracy]")
    near("class 1 counts three times, two units, accuracy", ours["accuracy"], metrics.accuracy_score(truth, said), 0.003)

    # Both minimise weight^2 / (2 C N) + the mean hinge loss, the bias not counted.
    penalty = 0.005
    machine = svm.SVC(kernel="linear", C=1 / (2 * penalty * TRAIN)).fit(features[train], answers[train, 0])
    margins = machine.decision_function(features[held_out])
    ours = dtf(launch, features, answers[:, :1], f"[dense: {{units: 1, kernel_regularizer: {{l2: {penalty}}}}}]", "hinge",
               "[accuracy]")
    signs = 2 * answers[held_out, 0] - 1
    theirs = numpy.mean(numpy.maximum(0, 1 - signs * margins)) + penalty * numpy.sum(machine.coef_ ** 2)
    near("support vector machine, hinge loss and penalty", ours["loss"], theirs, 0.005)
    near("support vector machine, accuracy", ours["accuracy"], metrics.accuracy_score(answers[held_out, 0], margins > 0),
         0.005)


def main():
    warnings.filterwarnings("error", category=DeprecationWarning)
    seed = 20
    print(f"seed {seed}")
    random = numpy.random.default_rng(seed)
    check_regression(sys.argv[1], random)
    check_classes(sys.argv[1], random)


main()
