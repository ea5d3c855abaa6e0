"""A table with missing values, decimal commas, booleans and words: its preparation is learned once,
kept in the checkpoint, and used by evaluation, prediction, a resumed job and the ONNX file.
Usage: prepared_table_test.py DTF_LAUNCH

Without onnxruntime the last comparison is left out, which a line says; scripts/python-env.sh
installs it.
"""
import json
import math
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

try:
    import numpy
    import onnxruntime
except ImportError:
    onnxruntime = None

JOB = """job: prepared
run_dir: {folder}/run
cluster:
  ps: [localhost:auto]
  worker: [localhost:auto, localhost:auto]
train:
  model:
    input: {{shape: [7]}}
    layers:
      - dense: {{units: 16, activation: relu, name: numbers}}
      - embedding: {{categories: city, input_dim: 4, output_dim: 4, combiner: sum, name: city}}
      - embedding: {{categories: hobbies, input_dim: 5, output_dim: 4, combiner: mean, name: hobbies}}
      - concatenate: {{with: [numbers, city]}}
      - dense: {{units: 16, activation: relu}}
      - dense: {{units: 3}}
    loss: sparse_categorical_crossentropy
    metrics: [accuracy]
  data:
    train:
      format: csv
      files: [{folder}/train.csv]
      delimiter: ';'
      decimal: comma
      label_column: answer
      class_names: {{from: data}}
      numeric_columns:
        age: {{fill: median, missing_indicator: true, standardize: true}}
        income: {{fill: mean, missing_indicator: true, log1p: true, standardize: true}}
        trace: {{log1p: true, standardize: true}}
        warmth: {{standardize: true}}
      categorical_columns:
        city: {{columns: [city], vocabulary: {{from: data, max_size: 3}}}}
        hobbies: {{columns: [hobbies], vocabulary: {{from: data, max_size: 3}}, split: '|', max_words: 3}}
    eval:
      format: csv
      files: [{folder}/eval.csv]
      delimiter: ';'
      decimal: comma
      label_column: answer
      categorical_columns:
        city: {{columns: [city], vocabulary: {{from: data, max_size: 3}}}}
        hobbies: {{columns: [hobbies], vocabulary: {{from: data, max_size: 3}}, split: '|', max_words: 3}}
    batch_size: 50
  optimizer: {{adam: {{learning_rate: 0.01}}}}
  replication: {{mode: sync}}
  steps: 200
  checkpoint: {{every_steps: 100}}
"""
CITIES = ["rome", "oslo", "bonn", "york", "lima"]
HOBBIES = ["chess", "piano", "rowing", "tango"]
HOBBIES_MAX = 3
COLUMNS = ["age", "income", "trace", "warmth", "member", "city", "hobbies", "answer"]
TOLERANCE = 1e-5


def run(*words, code=0, given=None):
    """`given`: on standard input."""
    done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=120, input=given)
    assert done.returncode == code, (words, done.stdout, done.stderr)
    return done.stdout + (done.stderr if code else "")


def draw(generator, count):
    """Records as dictionaries; None is a missing value."""
    records = []
    traces = random.Random(count)  # so small that 1 + x has few of its digits in float32
    for _ in range(count):
        age, income = generator.uniform(18, 90), math.exp(generator.gauss(10, 1))
        member, city = generator.random() < 0.5, generator.choice(CITIES)
        hobbies = [hobby for hobby in HOBBIES[:HOBBIES_MAX] if traces.random() < 0.5] + ["golf"] * (traces.random() < 0.02)
        score = ((age - 54) / 20 + (math.log(income) - 10) + (1 if member else -1) + CITIES.index(city) / 4
                 + (0.5 if "piano" in hobbies else 0))
        records.append({"age": None if generator.random() < 0.1 else round(age, 1),
                        "income": None if generator.random() < 0.1 else round(income, 2),
                        "trace": round(traces.uniform(0.5e-4, 1.5e-4), 9),
                        "warmth": round(generator.gauss(15, 8), 2), "member": member, "city": city,
                        "hobbies": "|".join(hobbies[:HOBBIES_MAX]),
                        "answer": "no" if score < -0.5 else "yes" if score > 1.2 else "maybe"})
    return records


def write(path, records, columns=COLUMNS):
    def text(value):
        return "" if value is None else str(value).replace(".", ",")
    path.write_text("\n".join(";".join(line) for line in
                              [columns, *([text(record[name]) for name in columns] for record in records)]) + "\n")


def signature_of(folder):
    manifests = sorted(folder.glob("run/checkpoints/step-*/manifest.json"), key=lambda path: int(path.parent.name[5:]))
    return json.loads(json.loads(manifests[-1].read_text())["extra"]["data_signature"])


def check_learned(signature, records):
    """The numbers and words are those of the training data."""
    steps = {step["op"]: step for step in signature["inputs"][0]["preparation"]}
    there = {name: [record[name] for record in records if record[name] is not None] for name in COLUMNS}
    wanted = {"age": statistics.median(there["age"]), "income": statistics.fmean(there["income"])}
    for name, value in zip(steps["fill"]["columns"], steps["fill"]["values"]):
        assert math.isclose(value, wanted[name], rel_tol=1e-6), (name, value, wanted)
    logs = [math.log1p(value) for value in there["income"]]
    numbers = {"age": there["age"], "income": logs, "trace": [math.log1p(value) for value in there["trace"]],
               "warmth": there["warmth"]}
    standardize = steps["standardize"]
    assert standardize["columns"] == list(numbers)
    for name, mean, stddev in zip(numbers, standardize["mean"], standardize["stddev"]):
        assert math.isclose(mean, statistics.fmean(numbers[name]), rel_tol=1e-5), (name, mean)
        assert math.isclose(stddev, statistics.pstdev(numbers[name]), rel_tol=1e-5), (name, stddev)
    counts = {city: there["city"].count(city) for city in CITIES}
    assert signature["inputs"][1]["preparation"][0]["words"] == sorted(CITIES, key=lambda city: (-counts[city], city))[:3]
    hobbies = signature["inputs"][2]["preparation"][0]
    assert (hobbies["split"], hobbies["max_words"]) == ("|", HOBBIES_MAX) and set(hobbies["words"]) == set(HOBBIES[:3]), hobbies
    assert signature["targets"][0]["preparation"][0]["words"] == ["maybe", "no", "yes"]


def probabilities(launch, job, table):
    lines = [json.loads(line) for line in run(launch, "predict", job, "--json", "--input", table).splitlines()]
    return [line["probabilities"] for line in lines], lines


def check_onnx(launch, job, folder, records, ours, vocabulary, known):
    """Fed with the numbers of the table, NaN where there is none; of several words in a field 0 is none."""
    run(launch, "export", job, "--to", folder / "model.onnx")
    other = folder / "other.yaml"
    other.write_text(job.read_text().replace(f"{folder}/run", f"{folder}/other"))
    imported = run(launch, "import", other, "--from", folder / "model.onnx")
    assert "not used" not in imported, "the constants of the preparation are no weights: " + imported
    session = onnxruntime.InferenceSession(folder / "model.onnx", providers=["CPUExecutionProvider"])
    assert [(fed.name, fed.shape) for fed in session.get_inputs()] == [
        ("features", ["batch", 5]), ("categories/city", ["batch", 1]),
        ("categories/hobbies", ["batch", HOBBIES_MAX])]
    numbers = numpy.array([[math.nan if record[name] is None else float(record[name])
                            for name in ("age", "income", "trace", "warmth", "member")] for record in records], numpy.float32)
    words = numpy.array([[vocabulary.index(record["city"]) if record["city"] in vocabulary else len(vocabulary)]
                         for record in records], numpy.int32)
    def numbers_of(field):
        found = [1 + (known.index(word) if word in known else len(known)) for word in field.split("|") if word]
        return found + [0] * (HOBBIES_MAX - len(found))
    hobbies = numpy.array([numbers_of(record["hobbies"]) for record in records], numpy.int32)
    theirs, _ = session.run(None, {"features": numbers, "categories/city": words, "categories/hobbies": hobbies})
    difference = float(numpy.abs(numpy.array(ours) - theirs).max())
    assert difference <= TOLERANCE, difference
    print(f"onnxruntime {onnxruntime.__version__} differs by {difference:.1e}")


def main(launch):
    with tempfile.TemporaryDirectory() as root:
        folder = pathlib.Path(root)
        generator = random.Random(5)
        training, evaluation = draw(generator, 800), draw(generator, 200)
        write(folder / "train.csv", training)
        write(folder / "eval.csv", evaluation)
        job = folder / "job.yaml"
        job.write_text(JOB.format(folder=folder))
        run(launch, job)
        signature = signature_of(folder)
        check_learned(signature, training)
        accuracy = json.loads(run(launch, "eval", job, "--json").splitlines()[-1])["accuracy"]
        assert accuracy > 0.75, accuracy

        # Other columns, another order, and a word that the model doesn't know.
        rows = [*evaluation[:50], {**evaluation[0], "city": "kyiv", "age": None, "income": None}]
        write(folder / "rows.csv", rows, ["hobbies", "city", "member", "warmth", "trace", "income", "age"])
        ours, lines = probabilities(launch, job, folder / "rows.csv")
        assert len(ours) == 51 and {line["class_name"] for line in lines} <= {"maybe", "no", "yes"}, lines[0]

        # The same records from a pipe; a bad one has its line and reason, the others their numbers.
        text = (folder / "rows.csv").read_text()
        piped = [json.loads(line) for line in
                 run(launch, "predict", job, "--json", "--input", "-", given=text).splitlines()]
        assert piped == lines, piped[0]
        some = text.splitlines()[:4]
        some[2] = some[2] + ";7"
        piped = [json.loads(line) for line in
                 run(launch, "predict", job, "--json", "--input", "-", given="\n".join(some) + "\n").splitlines()]
        assert [line["example"] for line in piped] == [0, 1, 2] and piped[1]["error"].startswith("/dev/stdin:3:"), piped
        assert piped[2] == {**lines[2]}, piped[2]
        refused = run(launch, "predict", job, "--input", "-", given="city;age\nrome;7\n", code=78)
        assert "dtf-launch: error: /dev/stdin: it has no columns 'income'" in refused, refused
        assert "/dev/stdin: the file is empty" in run(launch, "predict", job, "--input", "-", given="", code=65)

        # The table grows; a resumed job goes on with the numbers that its parameters have learned.
        write(folder / "train.csv", [*training, *({**record, "age": 1000} for record in evaluation)])
        assert probabilities(launch, job, folder / "rows.csv")[0] == ours, "the training data don't matter"
        assert "preparation: of the checkpoint of step 200" in run(launch, "check", job)
        run(launch, job, "--set", "train.steps=300")
        assert signature_of(folder) == signature
        ours, _ = probabilities(launch, job, folder / "rows.csv")

        refused = run(launch, job, "--set", "train.steps=400", "--set",
                      "train.data.train.numeric_columns.age.fill=mean", code=78)
        assert "preparation" in refused, refused
        if onnxruntime:
            check_onnx(launch, job, folder, rows, ours, signature["inputs"][1]["preparation"][0]["words"],
                       signature["inputs"][2]["preparation"][0]["words"])
        else:
            print("LEFT OUT: there is no onnxruntime: run scripts/python-env.sh")

        # A job that begins anew learns anew, on each worker.
        run(launch, job, "--fresh")
        assert signature_of(folder) != signature
    print(f"accuracy {accuracy:.2f}")


if __name__ == "__main__":
    main(sys.argv[1])
