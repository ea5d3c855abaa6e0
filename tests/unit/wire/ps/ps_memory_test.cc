#include "common/wire/ps/ps_memory.h"

#include <capnp/message.h>
#include <gmock/gmock.h>

#include "common/base/error.h"
#include "common/wire/ps.capnp.h"

namespace dtf::wire {
namespace {

// The worker's end of a channel, and the memory that a ps gives at the other end.
class PsMemoryTest : public ::testing::Test {
 protected:
  void expectBadData(uint64_t key, uint64_t bytes, const char* text) {
    try {
      memory_.find(key, bytes);
      ADD_FAILURE() << "found";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kBadData);
      EXPECT_THAT(error.message(), ::testing::HasSubstr(text));
    }
  }
  void forget(uint64_t key) {
    capnp::MallocMessageBuilder message;
    auto results = message.initRoot<schema::PsData::PullResults>();
    results.initGone(1).set(0, key);
    memory_.forget(results.asReader().getGone());
  }

  net::MemoryDoor door_;
  PsMemory memory_{net::MemoryChannel::connect(door_.address(), door_.secret()), 128};
  net::MemoryChannel ps_ = door_.take().value();
  const SharedMemory first_{64}, second_{128};
};

TEST_F(PsMemoryTest, FindsWhatWasGivenByItsKeyAndMapsItOnce) {
  ps_.give(first_);
  ps_.give(second_);
  const auto second = memory_.find(second_.key(), 128);
  second_.data()[127] = std::byte{5};
  EXPECT_EQ(second->data()[127], std::byte{5});
  EXPECT_EQ(memory_.find(second_.key(), 100), second);
  EXPECT_NE(memory_.find(first_.key(), 64), second);
  EXPECT_EQ(memory_.TEST_mappedCount(), 2u);
}

TEST_F(PsMemoryTest, WhatWasNotGivenIsRefused) {
  ps_.give(first_);
  expectBadData(second_.key(), 1, "which was not shared");
  ps_.give(SharedMemory(129));
  expectBadData(second_.key(), 1, "gave 129 bytes of memory");
  expectBadData(first_.key(), 65, "of 65 bytes in shared memory of 64");
}

TEST_F(PsMemoryTest, WhatIsGoneIsUnmappedButForItsReaders) {
  ps_.give(first_);
  const auto reader = memory_.find(first_.key(), 64);
  forget(first_.key());
  forget(second_.key());  // it was never found here: no effect
  EXPECT_EQ(memory_.TEST_mappedCount(), 0u);
  EXPECT_EQ(reader->data()[0], std::byte{0});
  expectBadData(first_.key(), 1, "which was not shared");
}

}  // namespace
}  // namespace dtf::wire
