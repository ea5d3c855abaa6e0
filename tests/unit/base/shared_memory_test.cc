#include "common/base/shared_memory.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "common/base/error.h"
#include "tests/support/process.h"

namespace dtf {
namespace {

Fd sameFile(const SharedMemory& memory) {
  return Fd(::fcntl(memory.descriptor(), F_DUPFD_CLOEXEC, 0));
}

TEST(SharedMemory, IsZeroAndOfAWholePage) {
  const SharedMemory memory(5000);
  EXPECT_EQ(memory.bytes(), 5000u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.data()) % 4096, 0u);
  for (size_t i = 0; i < 5000; ++i) ASSERT_EQ(memory.data()[i], std::byte{0}) << i;
}

TEST(SharedMemory, HasAKeyOfItsOwn) {
  const SharedMemory one(1), two(1);
  EXPECT_NE(one.key(), 0u);
  EXPECT_NE(one.key(), two.key());
}

TEST(MappedMemory, ReadsWhatIsWrittenLater) {
  const SharedMemory memory(100);
  const MappedMemory mapped(sameFile(memory), 100);
  EXPECT_EQ(mapped.bytes(), 100u);
  std::memcpy(memory.data(), "written", 8);
  EXPECT_STREQ(reinterpret_cast<const char*>(mapped.data()), "written");
}

// From a process that has ended, of a size that needs many pages.
TEST(MappedMemory, OutlivesItsOwner) {
  auto memory = std::make_unique<SharedMemory>(1 << 20);
  memory->data()[(1 << 20) - 1] = std::byte{7};
  const MappedMemory mapped(sameFile(*memory), 1 << 20);
  memory.reset();
  EXPECT_EQ(mapped.data()[(1 << 20) - 1], std::byte{7});
}

TEST(MappedMemory, CannotBeMappedToWrite) {
  const SharedMemory memory(100);
  const Fd fd = sameFile(memory);
  EXPECT_EQ(::mmap(nullptr, 100, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0), MAP_FAILED);
  EXPECT_EQ(errno, EPERM);
  EXPECT_LT(::write(fd.get(), "x", 1), 0);
}

void expectBadData(const Fd& fd, size_t bytes, const char* message) {
  try {
    const MappedMemory mapped(fd, bytes);
    FAIL() << "mapped";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadData);
    EXPECT_THAT(error.message(), ::testing::HasSubstr(message));
  }
}

// A process that shrinks the memory would crash its readers.
TEST(MappedMemory, RefusesWhatMayShrink) {
  const Fd fd(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(fd.get(), 4096), 0);
  expectBadData(fd, 4096, "of a fixed size");
  const testing::TemporaryFolder folder;
  const Fd file(::open(folder.write("file", "text").c_str(), O_RDONLY | O_CLOEXEC));
  expectBadData(file, 4, "of a fixed size");
  expectBadData(Fd(), 4, "of a fixed size");
}

// A process that punches holes into it later would charge the reader for filling them.
TEST(MappedMemory, RefusesWhatMayBeWritten) {
  const Fd fd(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(fd.get(), 4096), 0);
  ASSERT_EQ(::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
  expectBadData(fd, 4096, "of a fixed size");
}

TEST(MappedMemory, RefusesMoreThanThereIs) {
  const SharedMemory memory(4096);
  expectBadData(sameFile(memory), 4097, "4096 bytes came where 4097 were named");
  EXPECT_EQ(::ftruncate(memory.descriptor(), 1), -1) << "it is sealed";
}

}  // namespace
}  // namespace dtf
