// An embedding's gradient travels as the rows that a batch looked up. Real processes.

#include "tests/e2e/recovery_fixture.h"

namespace dtf::testing {

namespace {

// The pixels of the digits are looked up: at most 256 rows of the table, all in its first part.
constexpr long kPixels = 28 * 28, kPixelValues = 256, kDimension = 4;

// The most bytes that one worker sends in a step to all ps together. Each array has less than a
// cache line of padding.
constexpr long kDenseBytes = (kPixels * kDimension * 10 + 10) * 4 + 6 * 64;
constexpr long kRowBytes = kPixelValues * (1 + kDimension) * 4;

ClusterOptions embeddingJob(const std::string& mode, int vocabulary, int steps) {
  return {.mode = mode,
          .steps = steps,
          .batch_size = 4,
          .optimizer = "{adagrad: {learning_rate: 0.05}}",
          .layers = "[embedding: {input_dim: " + std::to_string(vocabulary) + ", output_dim: " +
                    std::to_string(kDimension) + "}, flatten: , dense: {units: 10, name: softmax}]",
          .train_more =
              "  placement: {partition: {min_bytes: 1024}}\n"
              "  report: {every_steps: 50}\n"};
}

class SparseTest : public RecoveryTest {
 protected:
  // A job whose batches look up less than half of the table.
  static ClusterOptions travellingJob() {
    ClusterOptions options = embeddingJob("sync", 3000, kSteps);
    options.top_more = "shared_memory: false\n";
    return options;
  }
  // The gradient bytes of all ps, after they have ended.
  long gradientBytes() {
    long bytes = 0;
    for (auto& ps : ps_) {
      EXPECT_TRUE(ps->waitForOutput("gradient_bytes=", kEnd)) << ps->err();
      const std::string log = ps->err();
      const size_t at = log.find("gradient_bytes=");
      if (at != std::string::npos) bytes += std::atol(log.c_str() + at + 15);
    }
    return bytes;
  }

  // Restarts of this job's ps change no bit of it.
  void expectSameBits(const ClusterOptions& options, const std::string& message) {
    start(options, "calm");
    awaitEnd();
    start(options, "disturbed");
    loseAndStartAgain({1}, 300);
    EXPECT_TRUE(workers_[0]->waitForOutput(message, kEnd)) << workers_[0]->err();
    awaitEnd();
    EXPECT_EQ(summary("disturbed")["outcome"], "done");
    EXPECT_EQ(digestOf("disturbed"), digestOf("calm"));
  }
};

TEST_F(SparseTest, APushIsAsLargeAsTheRowsOfItsBatch) {
  constexpr int kVocabulary = 100'000, kFewSteps = 30, kWorkers = 2;
  constexpr long kTableBytes = long{kVocabulary} * kDimension * 4;
  for (const char* mode : {"sync", "async"}) {
    start(embeddingJob(mode, kVocabulary, kFewSteps), mode);
    const long pushes = std::string(mode) == "sync" ? kFewSteps * kWorkers : kFewSteps;
    const long bytes = gradientBytes();
    EXPECT_GT(bytes, pushes * kDenseBytes / 2) << mode;
    EXPECT_LE(bytes, pushes * (kDenseBytes + kRowBytes)) << mode;
    EXPECT_LT(bytes, pushes * kTableBytes / 5) << mode;
    awaitEnd();
    EXPECT_EQ(summary(mode)["global_step"], kFewSteps);
  }
}

TEST_F(SparseTest, TheNumberOfPsDoesNotChangeASyncRun) {
  ClusterOptions options = embeddingJob("sync", 300, 100);
  options.ps = 1;
  start(options, "one");
  awaitEnd();
  options.ps = 3;
  start(options, "three");
  awaitEnd();
  EXPECT_EQ(digestOf("one"), digestOf("three"));
}

// A worker that receives parameters through a socket fetches only the batch's rows; shared memory
// has all rows. Split tables, and evaluations in between.
TEST_F(SparseTest, AJobToWhichOnlyRowsComeHasTheBitsOfOneToWhichAllCome) {
  for (const char* mode : {"sync", "async"}) {
    ClusterOptions options = embeddingJob(mode, 30'000, 60);
    options.workers = std::string(mode) == "sync" ? 2 : 1;
    options.train_more += "  eval: {every_steps: 20}\n  summaries: {every_steps: 10}\n";
    start(options, "shared");
    EXPECT_TRUE(workers_[0]->waitForOutput("event=memory_shared", kEnd)) << workers_[0]->err();
    awaitEnd();
    options.top_more = "shared_memory: false\n";
    start(options, "rows");
    EXPECT_TRUE(workers_[0]->waitForOutput("event=rows_came", kEnd)) << workers_[0]->err();
    awaitEnd();
    EXPECT_EQ(digestOf("rows"), digestOf("shared")) << mode;
    EXPECT_EQ(summary("rows")["eval"]["loss"], summary("shared")["eval"]["loss"]) << mode;
  }
}

TEST_F(SparseTest, AReplicaHasTheSameBits) {
  ClusterOptions options = travellingJob();
  options.train_more += "  checkpoint: {every_steps: 500}\n";
  options.top_more += "durability: replica\n";
  expectSameBits(options, "ps/1 takes its values from replicas");
}

TEST_F(SparseTest, ACheckpointGivesTheRowsBack) {
  ClusterOptions options = travellingJob();
  options.train_more += "  checkpoint: {every_steps: 100}\n";
  expectSameBits(options, "all go back");
}

TEST_F(SparseTest, BackupWorkersAndAReplicaTakeRows) {
  ClusterOptions options = travellingJob();
  options.workers = 3;
  options.replication_more = ", replicas_to_aggregate: 2";
  options.train_more += "  checkpoint: {every_steps: 500}\n";
  options.top_more += "durability: replica\n";
  start(options, "job");
  loseAndStartAgain({1}, 300);
  EXPECT_TRUE(workers_[0]->waitForOutput("ps/1 takes its values from replicas", kEnd));
  awaitEnd();
  EXPECT_EQ(summary("job")["outcome"], "done");
  EXPECT_EQ(summary("job")["global_step"], kSteps);
}

}  // namespace

}  // namespace dtf::testing
