#pragma once

// A job's file on the way: the parts that follow from the data, and the text that they make.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace dtf::launcher {

// Where the file will be. Value type.
struct JobPlace {
  std::string job;             // its name
  std::filesystem::path file;  // empty: stdout
  std::filesystem::path folder() const;
};

// Value type.
struct JobDraft {
  std::vector<std::string> findings;  // about the data, for a person
  std::vector<std::string> model;     // lines below `model:`, indented from there
  std::vector<std::string> data;  // likewise below `data:`: `train`, and `eval` where there is one
  std::string input;              // a file to predict from
  int64_t examples = 0;           // of the data, on both sides of a split
  double split = 0;               // evaluated; 0: none
  bool evaluates = false;
  std::string metrics;   // of the evaluations; the first says which is the best
  int64_t steps = 1500;  // about so many
  int64_t batch_size = 0;
  double learning_rate = 0.005;
};

// What the last layer gives.
struct Learnt {
  int64_t classes = 0;  // 0: numbers
  int64_t numbers = 1;
  bool tags = false;               // each number is 0 or 1
  double mean = 0, deviation = 0;  // of one number; 0: its scale stays
};

// Chooses the split and the batch for so many examples.
void planExamples(JobDraft& draft, int64_t examples, bool has_eval_data);

// Adds the hidden layers of a network for a record of numbers.
void addHiddenLayers(JobDraft& draft);

// Adds the last layer, the loss and the metrics.
void addOutput(JobDraft& draft, const Learnt& learnt);

// The line that lets examples be left out, where `bad` of them can't be read: of one side of the
// data, indented by 2. The limit leaves room for as many more. Below a few, for ten.
std::string maxBadRecords(int64_t bad);

// `path` from `folder`, as a value of the file.
std::string yamlPath(const std::filesystem::path& path, const std::filesystem::path& folder);

// A word for a job, a layer or an input of the model: letters, digits, '_' and '-'.
std::string plainName(const std::string& text, const std::string& otherwise);

// Leaves no example of those to train on for an evaluation.
void trainOnAll(JobDraft& draft);

// The whole file.
std::string jobText(const JobDraft& draft, const JobPlace& place);

// "dtf-launch penguins.yaml", and what comes after it: the commands to go on with.
std::vector<std::string> nextCommands(const JobDraft& draft, const JobPlace& place);

}  // namespace dtf::launcher
