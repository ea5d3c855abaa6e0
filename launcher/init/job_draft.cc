#include "launcher/init/job_draft.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <system_error>

#include "common/base/check.h"
#include "common/base/text.h"
#include "launcher/init/yaml_text.h"

namespace dtf::launcher {

namespace {

namespace fs = std::filesystem;

constexpr size_t kPlainNameMax = 64;

int64_t trainedExamples(const JobDraft& draft) {
  const auto trained =
      static_cast<int64_t>(static_cast<double>(draft.examples) * (1 - draft.split));
  return std::max<int64_t>(trained, 1);
}

int64_t stepsOfEpoch(const JobDraft& draft) {
  DTF_CHECK(draft.batch_size > 0);
  return (trainedExamples(draft) + draft.batch_size - 1) / draft.batch_size;
}

int64_t epochsOf(const JobDraft& draft) {
  constexpr int64_t kEpochsMax = 300;
  const int64_t of_epoch = stepsOfEpoch(draft);
  return std::clamp<int64_t>((draft.steps + of_epoch - 1) / of_epoch, 1, kEpochsMax);
}

// A word of a shell.
std::string shellWord(const fs::path& path) {
  const std::string text = printable(path.string());
  const bool plain = std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '/' || c == '.' || c == '_' || c == '-';
  });
  if (plain && !text.empty()) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

std::string indented(const std::vector<std::string>& lines, size_t indent) {
  std::string text;
  for (const std::string& line : lines) text += std::string(indent, ' ') + line + "\n";
  return text;
}

std::string headText(const JobDraft& draft, const JobPlace& place) {
  std::string text = "# dtf-launch init wrote this file. It trains as it is:\n#\n";
  for (const std::string& command : nextCommands(draft, place)) text += "#   " + command + "\n";
  text += "#\n# Found in the data:\n#\n";
  for (const std::string& line : draft.findings) text += "#   " + printable(line) + "\n";
  return text + "#\n# Paths start at this file. `dtf-launch --help-config` lists every key.\n\n";
}

std::string clusterText(const JobPlace& place) {
  return fmt::format(
      "job: {}   # results go to runs/{}, below the folder you start from\n\n"
      "# One process trains. This line makes it two parameter servers and two workers:\n"
      "# cluster: {{ps: [\"localhost:auto\", \"localhost:auto\"], "
      "worker: [\"localhost:auto\", \"localhost:auto\"]}}\n\n",
      yamlText(place.job), place.job);
}

std::string splitText(const JobDraft& draft) {
  if (draft.split == 0) return "";
  return fmt::format(
      "    # This share of the examples is evaluated and not trained on. A checksum of an example\n"
      "    # chooses its side, so it keeps its side when others come.\n"
      "    eval_split: {}\n",
      yamlNumber(draft.split));
}

std::string trainingText(const JobDraft& draft) {
  const int64_t epochs = epochsOf(draft);
  const int64_t steps = epochs * stepsOfEpoch(draft);
  std::string text = fmt::format(
      "  optimizer: {{adam: {{learning_rate: {}}}}}\n"
      "  replication: {{mode: sync}}   # of several workers; the numbers repeat from run to run\n"
      "  epochs: {}   # times through the examples: about {} steps\n",
      yamlNumber(draft.learning_rate), epochs, steps);
  constexpr const char* kSaved =
      "  # The job is saved every ten minutes and at its end; `checkpoint: none` keeps nothing.\n";
  if (!draft.evaluates) return text + kSaved;
  constexpr int64_t kEvaluations = 10;
  return text +
         fmt::format("  eval: {{every_steps: {}}}   # and at the end\n",
                     std::max<int64_t>(1, steps / kEvaluations)) +
         kSaved +
         fmt::format(
             "  # The best evaluation's parameters stay, too, as more steps may overfit: "
             "`--best` takes them.\n"
             "  checkpoint: {{gather: true, keep_best: {}}}\n",
             draft.metrics.substr(0, draft.metrics.find(',')));
}

}  // namespace

fs::path JobPlace::folder() const {
  return file.empty() ? fs::current_path() : fs::absolute(file).lexically_normal().parent_path();
}

void planExamples(JobDraft& draft, int64_t examples, bool has_eval_data) {
  DTF_CHECK(examples > 0);
  constexpr int64_t kFew = 10, kMany = 50'000;
  draft.examples = examples;
  draft.split = has_eval_data || examples < kFew ? 0 : examples > kMany ? 0.1 : 0.2;
  draft.evaluates = has_eval_data || draft.split > 0;
  draft.batch_size = examples < 1000 ? 16 : examples < 10'000 ? 32 : 64;
}

void addHiddenLayers(JobDraft& draft) {
  constexpr int64_t kFew = 300, kSome = 3000;
  const int64_t units = draft.examples < kFew ? 16 : draft.examples < kSome ? 32 : 64;
  if (draft.examples < kSome) {
    draft.model.push_back(
        fmt::format("  - dense: {{units: {}, activation: relu, name: hidden}}", units));
    return;
  }
  draft.model.push_back(
      fmt::format("  - dense: {{units: {}, activation: relu, name: hidden_1}}", units));
  draft.model.push_back(
      fmt::format("  - dense: {{units: {}, activation: relu, name: hidden_2}}", units / 2));
}

void addOutput(JobDraft& draft, const Learnt& learnt) {
  DTF_CHECK(learnt.classes >= 0 && learnt.classes != 1 && learnt.numbers > 0);
  const auto finish = [&draft](std::string loss, std::string metrics) {
    draft.model.push_back("loss: " + std::move(loss));
    draft.metrics = std::move(metrics);
  };
  if (learnt.classes == 2) {
    draft.model.emplace_back(
        "  - dense: {units: 1, name: output}   # one unit tells class 0 from class 1");
    return finish("binary_crossentropy", "accuracy, auc");
  }
  if (learnt.classes > 0) {
    draft.model.push_back(fmt::format(
        "  - dense: {{units: {}, name: output}}   # one for each class", learnt.classes));
    return finish("sparse_categorical_crossentropy   # applies the softmax itself",
                  learnt.classes > 10 ? "accuracy, top_5" : "accuracy");
  }
  draft.model.push_back(fmt::format("  - dense: {{units: {}, name: output}}", learnt.numbers));
  if (learnt.tags) return finish("binary_crossentropy", "auc, precision, recall");
  constexpr double kLeast = 1e-6, kMost = 1e6;
  const double shift = learnt.deviation > 0 ? learnt.mean / learnt.deviation : kMost;
  if (learnt.numbers == 1 && learnt.deviation > kLeast && learnt.deviation < 100 * kMost &&
      std::abs(shift) < kMost) {
    draft.model.emplace_back(
        "  # From numbers around 0 to the range of the data: x * deviation + mean.");
    draft.model.push_back(fmt::format("  - normalization: {{mean: [{}], std: [{}], name: scale}}",
                                      yamlNumber(-shift), yamlNumber(1 / learnt.deviation)));
  }
  finish("mean_squared_error", "mean_absolute_error, r2_score");
}

std::string maxBadRecords(int64_t bad) {
  DTF_CHECK(bad > 0);
  constexpr int64_t kRoomMin = 10;
  return fmt::format("  max_bad_records: {}   # a job that finds more ends, and names the first",
                     bad + std::max(bad, kRoomMin));
}

std::string yamlPath(const fs::path& path, const fs::path& folder) {
  const fs::path absolute = fs::absolute(path).lexically_normal();
  const fs::path relative = absolute.lexically_relative(folder);
  // Far from the file, the absolute path is easier to read.
  int ups = 0;
  for (const fs::path& part : relative) ups += part == "..";
  std::string text = (relative.empty() || ups > 3 ? absolute : relative).string();
  if (text.size() > 1 && text.ends_with('/')) text.pop_back();
  if (text.starts_with('~')) text = "./" + text;
  return yamlText(text);
}

std::string plainName(const std::string& text, const std::string& otherwise) {
  std::string name;
  for (const char c : text.substr(0, kPlainNameMax)) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-';
    if (plain || (!name.empty() && name.back() != '_')) name += plain ? c : '_';
  }
  while (name.ends_with('_')) name.pop_back();
  while (name.starts_with('-')) name.erase(0, 1);
  return name.empty() ? otherwise : name;
}

void trainOnAll(JobDraft& draft) {
  if (draft.split == 0) return;
  draft.split = 0;
  draft.evaluates = false;
  draft.findings.emplace_back("all examples are trained on: no class has two that differ");
}

std::string jobText(const JobDraft& draft, const JobPlace& place) {
  DTF_CHECK(!place.job.empty());
  const std::string metrics =
      draft.evaluates ? fmt::format("    metrics: [{}]\n", draft.metrics) : "";
  return headText(draft, place) + clusterText(place) + "train:\n  model:\n" +
         indented(draft.model, 4) + metrics + "\n  data:\n" + indented(draft.data, 4) +
         splitText(draft) +
         fmt::format("    batch_size: {}   # of each worker and step\n    seed: 1\n\n",
                     draft.batch_size) +
         trainingText(draft);
}

std::vector<std::string> nextCommands(const JobDraft& draft, const JobPlace& place) {
  const std::string file = place.file.empty() ? "JOB.yaml" : shellWord(place.file);
  return {"dtf-launch " + file,
          "dtf-launch predict " + file + (draft.evaluates ? " --best" : "") + " --input " +
              shellWord(draft.input),
          "dtf-launch explain " + file};
}

}  // namespace dtf::launcher
