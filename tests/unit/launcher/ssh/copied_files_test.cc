#include "launcher/ssh/copied_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "common/base/error.h"
#include "tests/support/temporary_files.h"

namespace dtf::launcher {

namespace fs = std::filesystem;

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Format = cluster::DatasetSpec::Format;

std::vector<std::string> namesOf(const CopiedFiles& files) {
  std::vector<std::string> names;
  for (const CopiedFile& file : files.files)
    names.push_back(file.offered.program.empty() ? file.offered.path.filename().string()
                                                 : file.offered.program);
  return names;
}

class CopiedFilesTest : public ::testing::Test {
 protected:
  CopiedFilesTest() {
    job_.launch.copy = {true, true, "", 64};
    job_.train.emplace();
    job_.train->data.train.format = Format::kCsv;
    job_.train->data.train.files = {"a.csv", "b.csv"};
    job_.train->data.eval.emplace();
    job_.train->data.eval->format = Format::kCsv;
    job_.train->data.eval->files = {"eval.csv"};
    for (const char* name : {"a.csv", "b.csv", "eval.csv"}) files_.write(name, name);
  }

  const testing::TemporaryFiles files_;
  cluster::JobSpec job_;
  const ProgramFiles programs_{{"psd", "/bin/true"}, {"workerd", "/bin/true"}, {"dtf-agent", "x"}};
};

TEST_F(CopiedFilesTest, EachHostHasWhatItsTasksRead) {
  const TaskId ps{JobKind::kPs, 0}, other{JobKind::kWorker, 1};
  EXPECT_THAT(namesOf(filesFor(job_, programs_, {ps})), ElementsAre("psd", "workerd"));
  EXPECT_THAT(namesOf(filesFor(job_, programs_, {ps, other})),
              ElementsAre("psd", "workerd", "a.csv", "b.csv"));
  job_.launch.copy.programs = false;
  const CopiedFiles chief = filesFor(job_, programs_, {kChief});
  EXPECT_THAT(namesOf(chief), ElementsAre("a.csv", "b.csv", "eval.csv"));
  EXPECT_EQ(chief.files[0].offered.path, fs::current_path() / "a.csv");
  EXPECT_EQ(chief.bytes(), 5u + 5u + 8u) << "before they are read";
  job_.launch.copy.data = false;
  EXPECT_TRUE(filesFor(job_, programs_, {kChief}).files.empty());
}

TEST_F(CopiedFilesTest, AFileThatIsNamedTwiceIsCopiedOnce) {
  job_.launch.copy.programs = false;
  job_.train->data.train.files = {"a.csv", "./a.csv"};
  job_.train->data.eval->files = {fs::current_path() / "a.csv"};
  EXPECT_THAT(namesOf(filesFor(job_, {}, {kChief})), ElementsAre("a.csv"));
}

TEST_F(CopiedFilesTest, AFolderOfImagesHasItsClassesEvenThoseWithoutAnImage) {
  fs::create_directories("images/cats/old");
  fs::create_directories("images/dogs");
  files_.write("images/cats/old/1.png", "png");
  files_.write("images/cats/notes.txt", "text");
  cluster::DatasetSpec& train = job_.train->data.train;
  train = {};
  train.format = Format::kImages;
  train.image_folder.folder.path = "images";
  job_.launch.copy.programs = false;
  job_.train->data.eval.reset();
  const CopiedFiles found = filesFor(job_, {}, {kChief});
  EXPECT_THAT(namesOf(found), ElementsAre("1.png"));
  EXPECT_THAT(found.folders,
              ElementsAre(fs::current_path() / "images/cats", fs::current_path() / "images/dogs"));
}

TEST_F(CopiedFilesTest, AFileIsReadOnceForAllWhoNeedIt) {
  CopiedFiles one = filesFor(job_, programs_, {{JobKind::kWorker, 1}});
  CopiedFiles two = filesFor(job_, programs_, {kChief});
  FileDigests digests;
  digests.add(one);
  digests.add(two);
  while (digests.step()) {
  }
  EXPECT_EQ(digests.done(), digests.bytes());
  EXPECT_EQ(digests.bytes(), fs::file_size("/bin/true") + 5 + 5 + 8);
  Sha256 sha256;
  sha256.update("a.csv");
  const std::string digest = sha256.finish();
  EXPECT_EQ(one.files[2].offered.digest, digest);
  EXPECT_EQ(two.files[2].offered.digest, digest);
  EXPECT_EQ(two.files[2].offered.bytes, 5u);
  EXPECT_EQ(two.bytes(), 2 * fs::file_size("/bin/true") + 5 + 5 + 8);
}

TEST_F(CopiedFilesTest, WhatCantBeReadIsNamed) {
  job_.train->data.train.files = {"gone.csv"};
  job_.launch.copy.programs = false;
  CopiedFiles files = filesFor(job_, {}, {{JobKind::kWorker, 1}});
  FileDigests digests;
  digests.add(files);
  try {
    digests.step();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadData);
    EXPECT_THAT(error.message(), HasSubstr("gone.csv: cannot be copied to other hosts: No such"));
  }
}

TEST_F(CopiedFilesTest, AFileThatGrowsWhileItIsReadIsNamed) {
  constexpr size_t kMoreThanAStep = size_t{20} << 20;
  files_.write("a.csv", std::string(kMoreThanAStep, 'a'));
  job_.launch.copy.programs = false;
  CopiedFiles files = filesFor(job_, {}, {{JobKind::kWorker, 1}});
  FileDigests digests;
  digests.add(files);
  ASSERT_TRUE(digests.step());
  std::ofstream("a.csv", std::ios::app) << "more";
  try {
    while (digests.step()) {
    }
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadData);
    EXPECT_THAT(error.message(), HasSubstr("a.csv: it changed while it was copied"));
  }
}

}  // namespace dtf::launcher
