#include "common/checkpoint/snapshot_folder.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>

#include "common/base/error.h"
#include "tests/unit/checkpoint/checkpoint_fixture.h"

namespace dtf::checkpoint {
namespace {

using testing::SimulatedCrash;
using testing::SimulatedDisk;
using Names = std::vector<CutName>;

const std::filesystem::path kHome = "/dtf-1000-job-0";

std::unique_ptr<SimulatedDisk> emptyMemory() {
  return std::make_unique<SimulatedDisk>();
}

// Writes the whole small model as one ps's shard.
void writeCut(SnapshotFolder& folder, const CutName& name,
              std::optional<CutName> keep = std::nullopt) {
  Random random(1);
  const std::vector<ShardValues> values = cutModel(smallModel(), 1, name.step, random);
  Manifest manifest = manifestFor(smallModel(), name.step, {});
  manifest.clocks = {ClockState{name.step, 0.5, 0.25}};
  folder.write(name, keep, manifest, values[0].parts);
}

// Returns whether it can be read, each bit as it was written.
bool readsRight(const SnapshotFolder& folder, const CutName& name) {
  const Manifest manifest = folder.manifest(name);
  for (const VariableInfo& variable : manifest.variables) {
    for (const std::string& tensor : tensorNames(variable)) {
      std::vector<float> values(static_cast<size_t>(variable.shape.elements()));
      const WantedPart wanted{tensor, 0, values.size(), values.data()};
      folder.read(name, manifest, {&wanted, 1});
      for (uint64_t i = 0; i < values.size(); ++i)
        if (std::bit_cast<uint32_t>(values[i]) !=
            std::bit_cast<uint32_t>(valueAt(tensor, i, name.step)))
          return false;
    }
  }
  return true;
}

std::string errorOf(const std::function<void()>& action, ErrorCode code) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.message();
    return error.message();
  }
  ADD_FAILURE() << "it was done";
  return {};
}

TEST(SnapshotFolder, KeepsTheOneThatAllHaveAndTheNewest) {
  const auto disk = emptyMemory();
  SnapshotFolder folder(*disk, {kHome}, 1);
  EXPECT_TRUE(folder.list().empty());
  writeCut(folder, {7, 10});
  writeCut(folder, {7, 20}, CutName{7, 10});
  EXPECT_EQ(folder.list(), (Names{{7, 10}, {7, 20}}));
  writeCut(folder, {7, 100}, CutName{7, 20});
  // A later epoch; another process lists both, the oldest first.
  writeCut(folder, {0x2000000000000003, 30}, CutName{7, 100});
  const SnapshotFolder again(*disk, {kHome}, 1);
  EXPECT_EQ(again.list(), (Names{{7, 100}, {0x2000000000000003, 30}}));
  for (const CutName& name : again.list()) EXPECT_TRUE(readsRight(again, name));
  EXPECT_TRUE(SnapshotFolder(*disk, {kHome}, 0).list().empty()) << "that is another ps's";
}

// The process dies at each operation: the snapshots that are listed afterwards are whole, and the
// one that all ps had is among them.
TEST(SnapshotFolder, AProcessThatDiesWhileItWritesHarmsNoSnapshot) {
  constexpr CutName kBefore{1, 10};
  constexpr CutName kCut{1, 20};
  size_t crashes = 0;
  for (size_t i = 0;; ++i) {
    const auto disk = emptyMemory();
    SnapshotFolder folder(*disk, {kHome}, 0);
    writeCut(folder, {1, 5});
    writeCut(folder, kBefore, CutName{1, 5});
    const size_t operations = disk->operations().size();
    disk->crashAt(operations + i);
    try {
      writeCut(folder, kCut, kBefore);
      break;
    } catch (const SimulatedCrash&) {
      ++crashes;
    }
    disk->restart();
    SnapshotFolder again(*disk, {kHome}, 0);
    const Names names = again.list();
    EXPECT_EQ(std::count(names.begin(), names.end(), kBefore), 1) << i;
    EXPECT_EQ(std::count(names.begin(), names.end(), kCut), 0) << i << ": it was never sealed";
    for (const CutName& name : names) EXPECT_TRUE(readsRight(again, name)) << i;
    // The remains don't block a later snapshot.
    writeCut(again, kCut, kBefore);
    EXPECT_EQ(again.list(), (Names{kBefore, kCut})) << i;
  }
  EXPECT_GT(crashes, 10u);
}

TEST(SnapshotFolder, TheLastPsThatLeavesRemovesTheFolderOfTheJob) {
  const auto disk = emptyMemory();
  SnapshotFolder first(*disk, {kHome}, 0);
  SnapshotFolder second(*disk, {kHome}, 1);
  for (SnapshotFolder* folder : {&first, &second}) writeCut(*folder, {1, 10});
  first.removeAll();
  EXPECT_TRUE(first.list().empty());
  EXPECT_EQ(second.list(), (Names{{1, 10}}));
  second.removeAll();
  EXPECT_FALSE(disk->exists(kHome));
  second.removeAll();
}

TEST(SnapshotFolder, AFailedWriteLeavesTheOthersAndNoRest) {
  const auto disk = emptyMemory();
  SnapshotFolder folder(*disk, {kHome}, 0);
  writeCut(folder, {1, 10});
  disk->failAll(SimulatedDisk::Op::kWrite, ENOSPC);
  errorOf([&] { writeCut(folder, {1, 20}, CutName{1, 10}); }, ErrorCode::kCannotWrite);
  EXPECT_EQ(folder.list(), (Names{{1, 10}}));
  for (const auto& file : disk->files())
    EXPECT_NE(file.string().find("cut-1-10/"), std::string::npos) << file;
}

TEST(SnapshotFolder, DamagedShortAndForeignFilesAreNotListed) {
  const auto disk = emptyMemory();
  SnapshotFolder folder(*disk, {kHome}, 0);
  writeCut(folder, {1, 10});
  writeCut(folder, {1, 20}, CutName{1, 10});
  const auto cut = kHome / "ps-0" / "cut-1-20";
  const auto shard = cut / shardFileName(0, 1);
  const std::string good = disk->contents(shard);
  disk->setContents(shard, good.substr(0, good.size() - 1));
  EXPECT_EQ(folder.list(), (Names{{1, 10}})) << "it is short";
  disk->setContents(shard, good);
  EXPECT_EQ(folder.list(), (Names{{1, 10}, {1, 20}}));
  const std::string manifest = disk->contents(cut / kManifestFile);
  disk->setContents(cut / kManifestFile, manifest.substr(0, manifest.size() / 2));
  EXPECT_EQ(folder.list(), (Names{{1, 10}})) << "its manifest is damaged";
  // Somebody renamed it.
  disk->setContents(cut / kManifestFile, manifest);
  disk->rename(cut, kHome / "ps-0" / "cut-1-30");
  EXPECT_EQ(folder.list(), (Names{{1, 10}}));
  for (const char* name :
       {"cut-1-", "cut--3", "cut-1-40x", "cut-0-4", "cut", "other", "cut-1-9.tmp"})
    disk->makeFolder(kHome / "ps-0" / name);
  EXPECT_EQ(folder.list(), (Names{{1, 10}}));
  writeCut(folder, {1, 40}, CutName{1, 10});
  EXPECT_EQ(disk->list(kHome / "ps-0").size(), 2u) << "what is of no use takes no memory";
}

TEST(SnapshotFolder, AFlippedBitIsFoundWhenItIsRead) {
  const auto disk = emptyMemory();
  SnapshotFolder folder(*disk, {kHome}, 0);
  writeCut(folder, {1, 10});
  const auto shard = kHome / "ps-0" / "cut-1-10" / shardFileName(0, 1);
  std::string bytes = disk->contents(shard);
  bytes[bytes.size() - 3] ^= 4;
  disk->setContents(shard, bytes);
  EXPECT_EQ(folder.list().size(), 1u) << "the checksums would take as long as a load";
  errorOf([&] { readsRight(folder, {1, 10}); }, ErrorCode::kBadData);
  folder.remove({1, 10});
  EXPECT_TRUE(folder.list().empty());
}

TEST(SnapshotFolder, AMemoryThatIsTooSmallIsNamedWithItsSizes) {
  const auto disk = emptyMemory();
  SnapshotPlace place{kHome, {}, [](const std::filesystem::path&) {
                        return std::filesystem::space_info{64 << 20, 100, 100};
                      }};
  SnapshotFolder folder(*disk, place, 0);
  const std::string reason = errorOf([&] { writeCut(folder, {1, 10}); }, ErrorCode::kCannotWrite);
  EXPECT_EQ(reason,
            "a snapshot takes 2.5 KiB, but / has only 100 B of 64.0 MiB left: make it larger (a "
            "container: --shm-size), or choose `durability: checkpoint`");
  EXPECT_TRUE(disk->files().empty());
}

// In real shared memory.
class SharedMemory : public ::testing::Test {
 protected:
  ~SharedMemory() override { removeSnapshots(realFileSystem(), place_); }
  const SnapshotPlace place_ =
      sharedMemoryPlace("snapshot_folder_test", "/nowhere/" + std::to_string(::getpid()));
};

TEST_F(SharedMemory, EachJobOfEachRunDirectoryHasItsOwnFolder) {
  const auto folder = [](const char* job, const char* run_dir) {
    return sharedMemoryPlace(job, run_dir).folder;
  };
  EXPECT_EQ(folder("a", "/x/../y"), folder("a", "/y"));
  EXPECT_NE(folder("a", "/x"), folder("a", "/y"));
  EXPECT_NE(folder("a", "/x"), folder("b", "/x"));
  EXPECT_EQ(folder("a", "/x").parent_path(), "/dev/shm");
}

TEST_F(SharedMemory, IsForThisUserAloneAndGoesWithItsJob) {
  SnapshotFolder folder(realFileSystem(), place_, 0);
  writeCut(folder, {1, 10});
  EXPECT_EQ(folder.list(), (Names{{1, 10}}));
  EXPECT_TRUE(readsRight(folder, {1, 10}));
  using std::filesystem::perms;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(place_.folder))
    EXPECT_EQ(entry.status().permissions() & (perms::group_all | perms::others_all), perms::none)
        << entry.path();
  EXPECT_TRUE(removeSnapshots(realFileSystem(), place_));
  EXPECT_FALSE(std::filesystem::exists(place_.folder));
  EXPECT_FALSE(removeSnapshots(realFileSystem(), place_));
}

TEST_F(SharedMemory, TheSumsOfKilledWorkersGoWithoutTheSnapshots) {
  SnapshotFolder folder(realFileSystem(), place_, 0);
  writeCut(folder, {1, 10});
  const std::filesystem::path sum = hostSumFile(place_, 2);
  EXPECT_EQ(sum.filename(), "sum-worker-2");
  realFileSystem().create(sum)->close();
  removeHostSums(realFileSystem(), place_);
  EXPECT_FALSE(std::filesystem::exists(sum));
  EXPECT_EQ(folder.list(), (Names{{1, 10}}));
  folder.removeAll();
  EXPECT_FALSE(std::filesystem::exists(place_.folder));
  removeHostSums(realFileSystem(), place_);  // of no folder
  realFileSystem().makeFolder(place_.folder);
  realFileSystem().create(sum)->close();
  removeHostSums(realFileSystem(), place_);
  EXPECT_FALSE(std::filesystem::exists(place_.folder));
}

TEST_F(SharedMemory, AFolderThatOthersCanWriteToIsNeitherReadNorWritten) {
  SnapshotFolder folder(realFileSystem(), place_, 0);
  writeCut(folder, {1, 10});
  std::filesystem::permissions(place_.folder, std::filesystem::perms::all);
  errorOf([&] { folder.list(); }, ErrorCode::kCannotWrite);
  errorOf([&] { writeCut(folder, {1, 20}); }, ErrorCode::kCannotWrite);
  std::filesystem::permissions(place_.folder, std::filesystem::perms::owner_all);
  EXPECT_EQ(folder.list(), (Names{{1, 10}}));
  // A link to a folder of dtf's isn't one itself.
  const auto elsewhere = place_.folder.string() + "-elsewhere";
  std::filesystem::rename(place_.folder, elsewhere);
  std::filesystem::create_directory_symlink(elsewhere, place_.folder);
  errorOf([&] { folder.list(); }, ErrorCode::kCannotWrite);
  std::filesystem::remove(place_.folder);
  std::filesystem::rename(elsewhere, place_.folder);
}

}  // namespace
}  // namespace dtf::checkpoint
