#include "common/train/job_size.h"

#include "tests/unit/train/job_check_fixture.h"

namespace dtf::train {
namespace {

using JobSizeTest = JobCheckTest;

TEST_F(JobSizeTest, CountsTheParametersOfEachPs) {
  EXPECT_EQ(mistakesOf(kSoftmax), "");
  ASSERT_TRUE(size_);
  EXPECT_EQ(size_->parameters, 7850u);
  EXPECT_EQ(size_->ps_bytes, (std::vector<uint64_t>{31360, 40}));
  // Two copies on the ps, two on each of two workers; 10 000 digits on each, 2000 on the chief; the
  // outputs of a batch of 100 on each.
  EXPECT_EQ(size_->memory_bytes, 6u * 31400 + 785 * (2 * 10'000 + 2000) + 2 * kOutputBytes);
  EXPECT_EQ(sizeText(*size_), "7850 parameters, 30.7 KiB: 30.6 KiB on ps/0, 40 B on ps/1");
  size_->ps_bytes = {1024, 2048, 1024, 1024, 3072};
  EXPECT_EQ(sizeText(*size_), "7850 parameters, 30.7 KiB: from 1.0 KiB to 3.0 KiB on each of 5 ps");
}

// The gradient is as large as the rows that a batch names.
TEST_F(JobSizeTest, ATableOfRowsCountsOnceOnAWorker) {
  const std::string train =
      "train:\n  model: {input: {shape: [28, 28, 1]}, layers: [embedding: {input_dim: 1000, "
      "output_dim: 8}, flatten: , dense: {units: 10}], loss: sparse_categorical_crossentropy}\n";
  const std::string tasks = "cluster: {ps: [a:1], worker: [b:1]}\n";
  const std::string decays = "  optimizer: {gradient_descent: {weight_decay: 0.1}}\n";
  EXPECT_EQ(mistakesIn(tasks + train + decays, ErrorCode::kBadConfig), "");
  const uint64_t dense = size_->worker_bytes;
  EXPECT_EQ(mistakesIn(tasks + train, ErrorCode::kBadConfig), "");
  EXPECT_EQ(size_->worker_bytes, dense - 1000 * 8 * sizeof(float));
}

TEST_F(JobSizeTest, TransfersTakeHalfOfItAgainOnAWorkerOrWithAResidualAll) {
  const std::string tasks = "cluster: {ps: [a:1], worker: [b:1]}\n";
  const std::string train = std::string("train:\n") + kSoftmax;
  EXPECT_EQ(mistakesIn(tasks + train, ErrorCode::kBadConfig), "");
  const uint64_t without = size_->worker_bytes;
  EXPECT_EQ(mistakesIn(tasks + train + "  replication: {transfer_dtype: bfloat16}\n",
                       ErrorCode::kBadConfig),
            "");
  EXPECT_EQ(size_->worker_bytes, without + without / 2);
  const uint64_t copies = size_->ps_copies;
  EXPECT_EQ(mistakesIn(tasks + train + "  replication: {transfer: {dtype: int8}}\n",
                       ErrorCode::kBadConfig),
            "");
  EXPECT_EQ(size_->worker_bytes, 2 * without);
  EXPECT_GT(size_->ps_copies, copies) << "the parameters of each worker of an async job";
}

// Snapshots are in /dev/shm, which is the host's memory, too.
TEST_F(JobSizeTest, SnapshotsTakeMemoryTwice) {
  const std::string tasks = "cluster: {ps: [a:1], worker: [b:1]}\n";
  const std::string train = std::string("train:\n") + kSoftmax + "  optimizer: adam\n";
  EXPECT_EQ(mistakesIn(tasks + train, ErrorCode::kBadConfig), "");
  const uint64_t without = size_->memory_bytes;
  EXPECT_EQ(mistakesIn(tasks + "durability: {snapshot: {every_steps: 9}}\n" + train,
                       ErrorCode::kBadConfig),
            "");
  EXPECT_EQ(size_->memory_bytes, without + 2u * 3 * 31400) << "with Adam's two slots";
}

TEST_F(JobSizeTest, AReplicaTakesWhatItsShardTakes) {
  const std::string train = std::string("train:\n") + kSoftmax + "  optimizer: adam\n";
  const std::string tasks = "cluster: {ps: [a:1, a:2], worker: [b:1]}\n";
  EXPECT_EQ(mistakesIn(tasks + train, ErrorCode::kBadConfig), "");
  const uint64_t without = size_->memory_bytes;
  EXPECT_EQ(mistakesIn(tasks + "durability: replica\n" + train, ErrorCode::kBadConfig), "");
  EXPECT_EQ(size_->memory_bytes, without + (2u + 2) * 31400);
  EXPECT_EQ(size_->ps_copies, 8u);
}

// A ranking metric holds every example's output, for each class, with its label.
TEST_F(JobSizeTest, ARankingKeepsAWholeEvaluation) {
  const auto job = [](const std::string& metrics, const std::string& loss, int units, int count) {
    return "  model: {input: {shape: [28, 28]}, layers: [flatten, dense: {units: " +
           std::to_string(units) + "}], loss: " + loss + ", metrics: [" + metrics +
           "]}\n  data:\n    train: {format: digits, count: 500}\n    eval: {format: digits, "
           "count: " +
           std::to_string(count) + "}\n";
  };
  const std::string softmax = "sparse_categorical_crossentropy";
  EXPECT_EQ(mistakesOf(job("accuracy", softmax, 10, 500)), "");
  const uint64_t without = size_->memory_bytes;
  EXPECT_EQ(size_->metric_bytes, 0u);
  EXPECT_EQ(mistakesOf(job("auc", softmax, 10, 500)), "");
  EXPECT_EQ(size_->metric_bytes, 500u * 10 * 8);
  EXPECT_EQ(size_->memory_bytes, without + 500 * 10 * 8);
  EXPECT_EQ(firstLine(mistakesOf(job("auc", softmax, 100'000, 500'000))),
            "c.yaml:6:5: error: the metric 'auc' keeps 372.5 GiB of each evaluation, and the 2 ps "
            "and 2 workers here need at least 374.3 GiB together; this host has 16.0 GiB");
}

}  // namespace
}  // namespace dtf::train
