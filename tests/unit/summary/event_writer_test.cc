#include "common/summary/event_writer.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "common/summary/crc32c.h"
#include "tests/support/simulated_disk.h"
#include "tests/unit/summary/proto_reader.h"

namespace dtf::summary {

using testing::SimulatedDisk;

namespace {

enum class Tail { kWhole, kTorn };

// Returns the records of a file and checks their checksums. A failed write may leave a torn record
// behind them, which readers take for the end.
std::vector<std::string> records(std::string_view file, Tail tail = Tail::kWhole) {
  std::vector<std::string> found;
  while (file.size() >= 16) {
    uint64_t length = 0;
    std::memcpy(&length, file.data(), sizeof length);
    if (length > file.size() - 16) break;
    found.emplace_back(file.substr(12, length));
    EXPECT_EQ(file.substr(0, 16 + length), encodeRecord(found.back()));
    file.remove_prefix(16 + length);
  }
  EXPECT_EQ(!file.empty(), tail == Tail::kTorn);
  return found;
}

StepSummary loss(double value) {
  StepSummary summary;
  summary.scalars = {{"loss", value}};
  return summary;
}

}  // namespace

TEST(EventWriter, WritesWhatItWasGivenInOrderBehindTheVersion) {
  SimulatedDisk disk;
  EventWriter writer(disk, "/run/events");
  writer.addSession(0, SessionStatus::kStart);
  writer.addGraph("graph");
  for (uint64_t step = 1; step <= 3; ++step) writer.add(step, loss(1));
  EXPECT_EQ(writer.finish().written, 5u);
  ASSERT_EQ(disk.files().size(), 1u);
  const std::string name = disk.files()[0].filename();
  EXPECT_TRUE(name.starts_with("events.out.tfevents.")) << name;
  const std::vector<std::string> events = records(disk.contents(disk.files()[0]));
  ASSERT_EQ(events.size(), 6u);
  EXPECT_EQ(fieldOf(events[0], 3).bytes, "brain.Event:2");
  EXPECT_EQ(fieldsOf(events[1], 7).size(), 1u);
  EXPECT_EQ(fieldOf(events[2], 4).bytes, "graph");
  for (uint64_t step = 1; step <= 3; ++step) EXPECT_EQ(fieldOf(events[2 + step], 2).integer, step);
}

TEST(EventWriter, MakesNoFileWithoutAnEventAndNeverTheSameTwice) {
  SimulatedDisk disk;
  { EventWriter writer(disk, "/run/events"); }
  EXPECT_TRUE(disk.files().empty());
  for (int i = 0; i < 3; ++i) {
    EventWriter writer(disk, "/run/events");
    writer.add(1, loss(1));
  }
  EXPECT_EQ(disk.files().size(), 3u);
}

TEST(EventWriter, AFullDiskIsCountedAndAfterwardsANewFileIsWritten) {
  SimulatedDisk disk;
  EventWriter first(disk, "/run/events");
  disk.failAll(SimulatedDisk::Op::kWrite, ENOSPC);
  first.add(1, loss(1));
  first.add(2, loss(1));
  const EventWriterStatus status = first.finish();
  EXPECT_EQ(status.written, 0u);
  EXPECT_EQ(status.failed, 2u);
  EXPECT_NE(status.degraded.find("No space"), std::string::npos) << status.degraded;
}

TEST(EventWriter, GoesOnInANewFileWhenAWriteHasFailed) {
  SimulatedDisk disk;
  EventWriter writer(disk, "/events");
  // Operations: folder, create, write of the version, then one write an event.
  disk.failAt(4, EIO);
  for (uint64_t step = 1; step <= 3; ++step) writer.add(step, loss(1));
  const EventWriterStatus status = writer.finish();
  EXPECT_EQ(status.written, 2u);
  EXPECT_EQ(status.failed, 1u);
  EXPECT_EQ(status.degraded, "");
  ASSERT_EQ(disk.files().size(), 2u);
  EXPECT_EQ(records(disk.contents(disk.files()[0]), Tail::kTorn).size(), 2u);
  EXPECT_EQ(records(disk.contents(disk.files()[1])).size(), 2u);
}

namespace {

// A disk that blocks until a test releases it.
class StuckDisk final : public FileSystem {
 public:
  void letGo() {
    MutexLock lock(mutex_);
    free_ = true;
    changed_.notifyAll();
  }
  void awaitCaller() {
    MutexLock lock(mutex_);
    while (!called_) changed_.wait(mutex_);
  }
  bool exists(const Path& path) override {
    MutexLock lock(mutex_);
    called_ = true;
    changed_.notifyAll();
    while (!free_) changed_.wait(mutex_);
    return disk_.exists(path);
  }
  std::unique_ptr<WritableFile> create(const Path& file) override { return disk_.create(file); }
  std::unique_ptr<ReadableFile> open(const Path& file) override { return disk_.open(file); }
  std::vector<FolderEntry> list(const Path& folder) override { return disk_.list(folder); }
  void makeFolder(const Path& folder) override { disk_.makeFolder(folder); }
  void rename(const Path& from, const Path& to) override { disk_.rename(from, to); }
  void removeFile(const Path& file) override { disk_.removeFile(file); }
  void removeFolder(const Path& folder) override { disk_.removeFolder(folder); }
  void syncFolder(const Path& folder) override { disk_.syncFolder(folder); }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool called_ = false;
  bool free_ = false;
  SimulatedDisk disk_;
};

}  // namespace

TEST(EventWriter, AQueueThatIsFullDropsAndCounts) {
  StuckDisk disk;
  EventWriter writer(disk, "/events");
  writer.add(0, loss(1));
  disk.awaitCaller();  // the first is out of the queue
  for (uint64_t step = 1; step <= EventWriter::kQueueEventsMax + 5; ++step)
    writer.add(step, loss(1));
  EXPECT_EQ(writer.status().dropped, 5u);
  disk.letGo();
  EXPECT_EQ(writer.finish().written, EventWriter::kQueueEventsMax + 1);
}

TEST(EventWriter, WaitingHistogramsAreBoundedInBytes) {
  StuckDisk disk;
  EventWriter writer(disk, "/events");
  StepSummary large;
  large.histograms = {
      {"x", std::vector<float>(EventWriter::kQueueBytesMax / sizeof(float) / 2 + 1)}};
  writer.add(1, large);
  disk.awaitCaller();
  writer.add(2, large);
  writer.add(3, loss(1));
  EXPECT_EQ(writer.status().dropped, 1u) << "the second large one";
  disk.letGo();
  EXPECT_EQ(writer.finish().written, 2u);
}

}  // namespace dtf::summary
