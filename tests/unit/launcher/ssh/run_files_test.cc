#include "launcher/ssh/run_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "common/base/error.h"
#include "launcher/ssh/frames.h"
#include "tests/support/process.h"

namespace dtf::launcher {

namespace fs = std::filesystem;

class RunFilesTest : public ::testing::Test {
 protected:
  RunFilesTest() {
    for (const fs::path& run : {there_, here_}) fs::create_directories(run);
    fs::create_directories(there_ / "events");
    fs::create_directories(there_ / "timeline");
  }
  static void append(const fs::path& file, const std::string& text) {
    std::ofstream(file, std::ios::app) << text;
  }
  static std::string read(const fs::path& file) {
    std::ifstream in(file);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }
  // Carries the changes from an agent to its launcher; returns the number of pieces.
  int carry(RunFilesReader& reader, const RunFilesWriter& writer) {
    reader.look();
    int pieces = 0;
    while (const std::optional<FilePiece> piece = reader.next()) {
      const std::string frame = fileFrame(*piece);
      writer.write(readFilePiece(std::string_view(frame).substr(5)));
      ++pieces;
    }
    return pieces;
  }

  const testing::TemporaryFolder folder_;
  const fs::path there_ = fs::path(folder_.path()) / "there";
  const fs::path here_ = fs::path(folder_.path()) / "here";
};

TEST_F(RunFilesTest, WhatIsAppendedThereIsAppendedHere) {
  const RunFilesWriter writer(here_);
  RunFilesReader reader(there_, {});
  append(there_ / "events/a", "one ");
  EXPECT_EQ(carry(reader, writer), 1);
  append(there_ / "events/a", "two");
  append(there_ / "events/b", std::string(kFilePieceBytesMax + 1, 'b'));
  EXPECT_EQ(carry(reader, writer), 3);
  EXPECT_EQ(carry(reader, writer), 0) << "nothing is new";
  for (const char* name : {"events/a", "events/b"})
    EXPECT_EQ(read(here_ / name), read(there_ / name));
}

// A timeline is written anew, and moved to its place.
TEST_F(RunFilesTest, AFileThatIsReplacedBeginsAnew) {
  const RunFilesWriter writer(here_);
  RunFilesReader reader(there_, {});
  append(there_ / "timeline/worker-0.json", "a long first one");
  carry(reader, writer);
  append(there_ / "timeline/new", "another");
  fs::rename(there_ / "timeline/new", there_ / "timeline/worker-0.json");
  carry(reader, writer);
  EXPECT_EQ(read(here_ / "timeline/worker-0.json"), "another");
}

TEST_F(RunFilesTest, AfterABreakItGoesOnWithWhatIsMissing) {
  append(there_ / "events/a", "one ");
  const RunFilesWriter writer(here_);
  {
    RunFilesReader reader(there_, writer.eventSizes());
    carry(reader, writer);
  }
  append(there_ / "events/a", "two");
  RunFilesReader reader(there_, writer.eventSizes());
  reader.look();
  const std::optional<FilePiece> piece = reader.next();
  ASSERT_TRUE(piece);
  EXPECT_EQ(piece->offset, 4u);
  EXPECT_EQ(piece->bytes, "two");
}

TEST_F(RunFilesTest, NothingElseTravels) {
  for (const char* name : {"events/events.out.tfevents.1.host-1", "timeline/ps-0.json"})
    EXPECT_TRUE(isRunFile(name)) << name;
  for (const char* name :
       {"", "events", "events/", "events/../x", "events/..", "events/.hidden", "/events/a",
        "checkpoints/step-1/manifest.json", "events/a/b", "timeline/a b", "launch.json"})
    EXPECT_FALSE(isRunFile(name)) << name;
  append(folder_.path() + "/secret", "secret");
  fs::create_symlink(folder_.path() + "/secret", there_ / "events/link");
  RunFilesReader reader(there_, {});
  reader.look();
  EXPECT_FALSE(reader.next());
}

TEST_F(RunFilesTest, WhatIsNotTheNextPieceIsNotWritten) {
  const RunFilesWriter writer(here_);
  const auto codeOf = [&](const FilePiece& piece) {
    try {
      writer.write(piece);
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::kInternal;
  };
  EXPECT_EQ(codeOf({"../a", 0, "x"}), ErrorCode::kBadData);
  EXPECT_EQ(codeOf({"events/a", 0, std::string(kFilePieceBytesMax + 1, 'x')}), ErrorCode::kBadData);
  EXPECT_EQ(codeOf({"events/a", 7, "x"}), ErrorCode::kCannotWrite);
  append(folder_.path() + "/secret", "secret");
  fs::create_symlink(folder_.path() + "/secret", here_ / "events/link");
  EXPECT_EQ(codeOf({"events/link", 0, "x"}), ErrorCode::kCannotWrite);
  EXPECT_EQ(read(folder_.path() + "/secret"), "secret");
}

TEST_F(RunFilesTest, TheMarkTellsWhoHasTheSameFolderAndGoesWithItsMaker) {
  append(here_ / ".launched-old", "");  // left by a launcher that was killed
  std::string mark;
  {
    const RunFilesWriter writer(here_);
    mark = writer.mark();
    EXPECT_TRUE(hasMark(here_, mark));
    EXPECT_FALSE(hasMark(there_, mark));
  }
  EXPECT_FALSE(hasMark(here_, mark));
  EXPECT_FALSE(hasMark(here_, ""));
  EXPECT_FALSE(hasMark(here_, ".launched-/../../there"));
  EXPECT_TRUE(fs::is_empty(here_));
}

// Two launches share the run directory. If the second removed the first one's mark, the first one's
// hosts would take the directory for another one, and send it its own files.
TEST_F(RunFilesTest, AMarkThatSomebodyHoldsIsLeftAlone) {
  const RunFilesWriter first(here_);
  const RunFilesWriter second(here_);
  EXPECT_TRUE(hasMark(here_, first.mark()));
  EXPECT_TRUE(hasMark(here_, second.mark()));
}

TEST_F(RunFilesTest, AFileThatBeginsAnewIsNotTruncatedUnderWhoHasItOpen) {
  const RunFilesWriter writer(here_);
  fs::create_directories(here_ / "timeline");
  append(here_ / "timeline/a", "what was there");
  std::ifstream open(here_ / "timeline/a");
  writer.write({"timeline/a", 0, "new"});
  EXPECT_EQ((std::string{std::istreambuf_iterator<char>(open), {}}), "what was there");
  EXPECT_EQ(read(here_ / "timeline/a"), "new");
  EXPECT_EQ(std::distance(fs::directory_iterator(here_ / "timeline"), {}), 1);
}

TEST_F(RunFilesTest, AFrameThatIsCutShortIsRefused) {
  const std::string frame = fileFrame({"events/a", 1, "x"});
  const std::string_view payload = std::string_view(frame).substr(5);
  for (size_t size = 0; size < payload.size() - 1; ++size)
    EXPECT_THROW(readFilePiece(payload.substr(0, size)), Error) << size;
  EXPECT_EQ(readFilePiece(payload).name, "events/a");
}

}  // namespace dtf::launcher
