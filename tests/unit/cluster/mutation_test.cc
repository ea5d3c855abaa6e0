// Random damage to good files: each result is loaded, or rejected with a report.

#include <gtest/gtest.h>

#include "common/base/error.h"
#include "common/base/random.h"
#include "common/cluster/cluster_yaml.h"
#include "tests/support/temporary_files.h"

namespace dtf::cluster {

using testing::TemporaryFiles;

namespace {

constexpr int kMutations = 2000;

constexpr std::string_view kGood =
    "job: mnist\n"
    "cluster:\n"
    "  ps: [localhost:2221, {address: 'localhost:2222', devices: [cpu:0], env: {A: b}}]\n"
    "  worker: [localhost:2223, \"localhost:auto\"]\n"
    "launch: {via: local}\n"
    "timeouts: &t {lease_seconds: 10.5}\n"
    "durability: {snapshot: {every_steps: 20}}\n"
    "train:\n"
    "  model:\n"
    "    input: {shape: [28, 28, 1]}\n"
    "    layers:\n"
    "      - flatten:\n"
    "      - dense: {units: 300, activation: relu, use_bias: true}\n"
    "      - dense: {units: 10, name: softmax}\n"
    "    loss: sparse_categorical_crossentropy\n"
    "    metrics: [accuracy]\n"
    "  data:\n"
    "    train: {format: idx, images: i.gz, labels: l.gz}\n"
    "    eval: {format: digits, count: 20}\n"
    "    batch_size: 100\n"
    "  optimizer: {adam: {learning_rate: 1e-3}}\n"
    "  replication: {mode: sync, replicas_to_aggregate: 2}\n"
    "  placement: {strategy: greedy, pins: {softmax/weights: '/job:ps/task:1'}, partition: "
    "{min_bytes: 99}}\n"
    "  steps: 100\n"
    "  eval: {every_steps: 10}\n";

// Pieces with a meaning for YAML or for the readers.
constexpr std::string_view kPieces[] = {"\n",
                                        " ",
                                        "  ",
                                        ": ",
                                        ":",
                                        "- ",
                                        "[",
                                        "]",
                                        "{",
                                        "}",
                                        ",",
                                        "&a ",
                                        "*t",
                                        "*a",
                                        "!",
                                        "!!map ",
                                        "? ",
                                        "|",
                                        ">",
                                        "'",
                                        "\"",
                                        "#",
                                        "%",
                                        "---\n",
                                        "...\n",
                                        "\t",
                                        "\\",
                                        "0",
                                        "-1",
                                        "1e999",
                                        ".nan",
                                        "99999999999999999999",
                                        "null",
                                        "~",
                                        "<<: *t\n",
                                        "\xC3",
                                        "\xEF\xBB\xBF",
                                        std::string_view("\0", 1),
                                        "\x04",
                                        "steps",
                                        "train",
                                        "gpu:0"};

std::string mutate(Random& random) {
  std::string text(kGood);
  for (uint64_t n = 1 + random.below(4); n > 0; --n) {
    const size_t at = random.below(text.size());
    const size_t length = random.below(12);
    switch (random.below(5)) {
      case 0:
        text.erase(at, length);
        break;
      case 1:
        text.insert(at, kPieces[random.below(std::size(kPieces))]);
        break;
      case 2:
        text[at] = static_cast<char>(random.below(256));
        break;
      case 3:
        text.insert(at, text.substr(random.below(text.size()), length * 8));
        break;
      default:
        text.replace(at, length, kPieces[random.below(std::size(kPieces))]);
    }
    if (text.empty()) text = "x";
  }
  return text;
}

}  // namespace

TEST(Mutations, EveryFileLoadsOrIsRefusedWithAReport) {
  const TemporaryFiles files;
  constexpr uint64_t kSeed = 20240607;
  int loaded = 0;
  for (int i = 0; i < kMutations; ++i) {
    Random random(kSeed, i);
    files.write("m.yaml", mutate(random));
    try {
      loadCluster("m.yaml", {});
      ++loaded;
    } catch (const Error& e) {
      ASSERT_EQ(e.code(), ErrorCode::kBadConfig) << "seed " << kSeed << " stream " << i;
      ASSERT_NE(e.message().find("error: "), std::string::npos)
          << "seed " << kSeed << " stream " << i;
      ASSERT_LT(e.message().size(), 20'000u) << "seed " << kSeed << " stream " << i;
    }
  }
  EXPECT_GT(loaded, kMutations / 100);
  EXPECT_LT(loaded, kMutations / 2);
}

}  // namespace dtf::cluster
