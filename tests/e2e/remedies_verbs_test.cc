// Remedies of messages about runs, checkpoints and command lines. These are not tried:
// - --as-root and "do it as that user" (they need root and another user);
// - launch.user, launch.identity and ~/.bashrc;
// - "install dtf there" and `gather`/`stay` (other hosts);
// - sbatch, salloc and units (Slurm, systemd);
// - ulimits and fs.file-max (limits_test.cc tries those), --shm-size;
// - "start all tasks with the same files" and "start it again" (by_hand_test.cc);
// - "end it first" (launch_test.cc), "upgrade the ps first" (versions_test.py);
// - keys at their end (keys_test.cc), and GPUs.

#include <filesystem>

#include "tests/e2e/remedies_fixture.h"
#include "tests/unit/data/npy_files.h"

namespace dtf::testing {

namespace {

namespace fs = std::filesystem;

const std::string kVerbsTable =
    "a,b,city,y\n1,2,rome,no\n3,4,york,yes\n5,6,rome,no\n7,8,york,yes\n";
const std::string kVerbsTrain =
    "{format: csv, files: [t.csv], label_column: y, class_names: [no, yes], feature_columns: [a, "
    "b], categorical_columns: {place: {columns: [city], vocabulary_list: [rome, york]}}}";
const std::string kVerbsJob =
    "job: job\nrun_dir: run\ncluster: {worker: [local]}\ntrain:\n"
    "  model:\n    input: {shape: [2]}\n    layers:\n"
    "      - dense: {units: 2, name: d}\n"
    "      - embedding: {categories: place, input_dim: 2, output_dim: 2, combiner: sum}\n"
    "      - add: {with: [d]}\n"
    "    loss: sparse_categorical_crossentropy\n"
    "  data: {batch_size: 2, train: " +
    kVerbsTrain + "}\n  steps: 2\n  checkpoint: {}\n";

Edits command(const std::vector<std::string>& argv) {
  return {.argv = argv};
}
Edits more(const std::vector<std::string>& words) {
  return {.more = words};
}
// A job file with a setting that has changed since the training.
Edits changed(const std::string& part, const std::string& successor,
              const std::vector<std::string>& argv = {"up", "-q"}) {
  return {.job = {{part, successor}}, .argv = argv};
}

std::vector<Remedy> remediesOfRuns() {
  const std::string eval = kVerbsTrain + ", eval: " + kVerbsTrain + "}";
  return {
      {"add 'eval' beside 'train' in 'data'",
       command({"eval"}),
       {.job = {{kVerbsTrain + "}", eval}}}},
      {"name a file with --input", command({"predict"}), more({"--input", "t.csv"})},
      {"or add 'eval' beside 'train' in 'data'",
       command({"predict"}),
       {.job = {{kVerbsTrain + "}", eval}}}},
      {"train first, without 'checkpoint: none'",
       {.argv = {"predict", "--input", "t.csv", "--run-dir", "none"}},
       {.first = {"up", "-q", "--run-dir", "none"}}},
      {"or name one with --checkpoint",
       {.argv = {"predict", "--input", "t.csv", "--run-dir", "none"}},
       more({"--checkpoint", "run/checkpoints/step-2"})},
      {"or its run with --run-dir",
       changed("run_dir: run", "run_dir: none", {"export", "--to", "w.npz"}),
       more({"--run-dir", "run"})},
      {"unknown format; end the name with .txt, .jsonl, .csv or .npy",
       command({"predict", "--input", "t.csv", "--output", "p.xls"}),
       command({"predict", "--input", "t.csv", "--output", "p.csv"})},
      {"--to is missing: name FILE.safetensors", command({"export"}),
       more({"--to", "w.safetensors"})},
      {"unknown format; end the name with .safetensors, .npz or .onnx",
       command({"export", "--to", "w.h5"}), command({"export", "--to", "w.onnx"})},
      {"or call this one 'job' to go on with that one",
       changed("job: job", "job: other"),
       {.job = {{"job: other", "job: job"}}}},
      {"Give each job a run_dir of its own",
       changed("job: job", "job: other"),
       {.job = {{"run_dir: run", "run_dir: mine"}}}},
      {"Give this job another run_dir",
       changed("units: 2", "units: 2, activation: relu"),
       {.job = {{"run_dir: run", "run_dir: mine"}}}},
      {"Describe the model as it was trained",
       changed("units: 2", "units: 2, activation: relu", {"export", "--to", "w.npz"}),
       {.job = {{"units: 2, activation: relu", "units: 2"}}}},
      {"or train this one with dtf-launch up --fresh",
       changed("units: 2", "units: 2, activation: relu", {"export", "--to", "w.npz"}),
       command({"up", "-q", "--fresh"})},
      {"say the model's with vocabulary_list",
       changed("[rome, york]", "[york, rome]", {"export", "--to", "w.npz"}),
       {.job = {{"[york, rome]", "[rome, york]"}}}},
      {"Or start anew: dtf-launch --fresh", changed("units: 2", "units: 2, activation: relu"),
       more({"--fresh"})},
      {"Without dtf-launch, move ",
       changed("units: 2", "units: 2, activation: relu"),
       {.removed = {"run/checkpoints"}}},
      {"or start anew with another run_dir",
       {.files = {{"run/checkpoints/step-2/manifest.json", "{}"}},
        .argv = {"up", "-q", "--set", "train.steps=4"}},
       more({"--run-dir", "mine"})},
      {"say the model's with feature_columns",
       changed("[a, b]", "[b, a]"),
       {.job = {{"[b, a]", "[a, b]"}}}},
      {"say their order with class_names",
       changed("[no, yes]", "[yes, no]"),
       {.job = {{"[yes, no]", "[no, yes]"}}}},
      {"it has no column 'b', which the model is trained on",
       {.files = {{"p.csv", "a,city\n1,rome\n"}}, .argv = {"predict", "--input", "p.csv"}},
       {.files = {{"p.csv", "a,city,b\n1,rome,2\n"}}}},
  };
}

std::vector<Remedy> remediesOfImports() {
  const std::vector<std::string> import = {"import", "--run-dir", "mine", "--from"};
  const auto from = [&import](const std::string& file) {
    std::vector<std::string> argv = import;
    argv.push_back(file);
    return argv;
  };
  const std::string foreign =
      data::zipOf({{"d/weights.npy", data::npyOf<float>("<f4", "(2, 2)", {1, 2, 3, 4})},
                   {"d/biases.npy", data::npyOf<float>("<f4", "(2,)", {1, 2})},
                   {"embedding/weights.npy", data::npyOf<float>("<f4", "(2, 2)", {1, 2, 3, 4})}});
  return {
      {"--from is missing: name FILE.safetensors", command({"import", "--run-dir", "mine"}),
       more({"--from", "good.npz"})},
      {"leave out 'checkpoint: none' in 'train'",
       {.job = {{"  checkpoint: {}\n", "  checkpoint: none\n"}}, .argv = from("good.npz")},
       {.job = {{"  checkpoint: none\n", ""}}}},
      {"give it another run_dir to start from imported weights",
       command({"import", "--from", "good.npz"}), more({"--run-dir", "mine"})},
      {"Add --layout pytorch",
       {.files = {{"w.npz", foreign}}, .argv = from("w.npz")},
       more({"--layout", "pytorch"})},
      {"or --layout dtf",
       {.files = {{"w.npz", foreign}}, .argv = from("w.npz")},
       more({"--layout", "dtf"})},
      {"leave --layout pytorch out",
       {.argv = {"import", "--run-dir", "mine", "--layout", "pytorch", "--from", "good.npz"}},
       command(from("good.npz"))},
      {"leave --layout out",
       {.argv = {"import", "--run-dir", "mine", "--layout", "dtf", "--from", "good.onnx"}},
       command(from("good.onnx"))},
      {"save them as one of these, as with safetensors.torch.save_file",
       {.files = {{"w.pt", foreign}}, .argv = from("w.pt")},
       command(from("good.safetensors"))},
      {"this looks like a zip archive (.npz is one, and .xlsx and .pt); expected a safetensors "
       "file",
       {.files = {{"w.safetensors", foreign}}, .argv = from("w.safetensors")},
       command(from("good.safetensors"))},
      {"expected an ONNX model",
       {.files = {{"w.onnx", "\x89HDF\r\n\x1a\n........"}}, .argv = from("w.onnx")},
       command(from("good.onnx"))},
      {"expected a zip archive (.npz is one)",
       {.files = {{"w.npz", "\x80\x04\x95 pickled"}}, .argv = from("w.npz")},
       command(from("good.npz"))},
  };
}

std::vector<Remedy> remediesOfCommandLines() {
  const std::string graph = "ops:\n  - NoOp: {name: n}\nrun: {targets: [n]}\n";
  return {
      {"or add --set launch.via=slurm", command({"submit", "--dry-run"}),
       more({"--set", "launch.via=slurm", "--set", "cluster.ps={count: 1}", "--set",
             "cluster.worker={count: 1}"})},
      {"write 'launch: {via: slurm}'",
       command({"submit", "--dry-run"}),
       {.job = {{"job: job\n", "job: job\nlaunch: {via: slurm}\n"},
                {"worker: [local]", "ps: {count: 1}, worker: {count: 1}"}}}},
      {"did you mean 'dtf-launch check'?", command({"chekc"}), command({"check"})},
      {"--set train.steps=VALUE", command({"check", "--steps", "4"}),
       command({"check", "--set", "train.steps=4"})},
      {"--set train.optimizer.NAME.learning_rate=VALUE",
       command({"check", "--learning-rate", "0.1"}),
       command({"check", "--set", "train.optimizer.adam.learning_rate=0.1"})},
      {"give --job NAME or --cluster", command({"keys", "init", "k"}), more({"--job", "job"})},
      {"or --cluster CLUSTER.yaml", command({"keys", "init", "k"}),
       more({"--cluster", "job.yaml"})},
      {"use --set train=FILE",
       command({"workerd", "--cluster", "job.yaml", "--task", "0", "--train", "t"}),
       command({"workerd", "--cluster", "job.yaml", "--task", "0", "--set", "train=t"}),
       "cannot read t"},
      {"--task and --task-index are the same option: give one",
       command({"workerd", "--cluster", "job.yaml", "--task", "7", "--task-index", "7"}),
       command({"workerd", "--cluster", "job.yaml", "--task", "7"}), "there is no worker/7"},
      {"give --train TRAIN.yaml",
       command(
           {"workerd", "--ps-hosts=localhost:1", "--worker-hosts=localhost:2", "--task-index=0"}),
       more({"--train", "none.yaml"}), "cannot read none.yaml"},
      {"--fresh is for worker 0",
       command({"workerd", "--cluster", "job.yaml", "--task", "1", "--fresh"}),
       command({"workerd", "--cluster", "job.yaml", "--task", "1"}), "there is no worker/1"},
      {"make it, or name another",
       {.files = {{"g.yaml", graph}},
        .argv = {"graph", "--graph", "g.yaml", "--timeline", "none/t.json"}},
       {.files = {{"none/.kept", ""}}},
       "worker/0 doesn't run"},
  };
}

}  // namespace

class RemediesVerbsTest : public RemediesTest {
 protected:
  RemediesVerbsTest() {
    folder_.write("t.csv", kVerbsTable);
    folder_.write("job.yaml", kVerbsJob);
    expectWell({"up", "job.yaml", "-q"});
    for (const char* file : {"good.safetensors", "good.npz", "good.onnx"}) {
      expectWell({"export", "job.yaml", "--to", file});
      files_[file] = folder_.read(file);
    }
    files_["t.csv"] = kVerbsTable;
  }

  void expectWell(std::vector<std::string> argv) {
    argv.insert(argv.begin(), binary("dtf-launch"));
    const ProcessResult result =
        runProcess(std::move(argv), std::chrono::seconds(60), {}, folder_.path());
    EXPECT_EQ(result.exit_code, 0) << result.err;
  }

  std::map<std::string, std::string> files_;
};

TEST_F(RemediesVerbsTest, OfRuns) {
  expectRemedies(kVerbsJob, files_, remediesOfRuns(), folder_.path() + "/run");
}

TEST_F(RemediesVerbsTest, OfImports) {
  expectRemedies(kVerbsJob, files_, remediesOfImports(), folder_.path() + "/run");
}

TEST_F(RemediesVerbsTest, OfCommandLines) {
  expectRemedies(kVerbsJob, files_, remediesOfCommandLines());
}

// A refused start gives the reason and keeps the summary of the run before.
TEST_F(RemediesVerbsTest, ARefusedStartLeavesTheSummaryOfTheRunBefore) {
  const std::string before = folder_.read("run/summary.json");
  folder_.write("job.yaml", kVerbsJob + "  optimizer: adam\n");
  const auto run = [this](std::vector<std::string> argv) {
    argv.insert(argv.begin(), binary("dtf-launch"));
    return runProcess(std::move(argv), std::chrono::seconds(60), {}, folder_.path());
  };
  const ProcessResult refused = run({"up", "job.yaml", "--set", "train.steps=4"});
  EXPECT_EQ(refused.exit_code, 78) << refused.err;
  EXPECT_NE(refused.out.find("of the run before: "), std::string::npos) << refused.out;
  const std::string cause = "is a checkpoint of another model";
  EXPECT_EQ(refused.err.find(cause), refused.err.rfind(cause)) << "once\n" << refused.err;
  EXPECT_LT(refused.err.rfind('\n', refused.err.size() - 2),
            refused.err.rfind("Give this job another"))
      << "the remedy is in the last line\n"
      << refused.err;
  EXPECT_EQ(folder_.read("run/summary.json"), before);
  const ProcessResult status = run({"status", "job.yaml"});
  EXPECT_NE(status.out.find("done at step 2"), std::string::npos) << status.out;
  EXPECT_NE(status.out.find("a start that was refused: dtf-launch logs job.yaml"),
            std::string::npos)
      << status.out;
  EXPECT_EQ(run({"up", "job.yaml", "-q", "--fresh"}).exit_code, 0);
  EXPECT_NE(folder_.read("run/summary.json"), before);
  EXPECT_EQ(run({"status", "job.yaml"}).out.find("refused"), std::string::npos);
}

}  // namespace dtf::testing
