#include "launcher/ssh/copy_sender.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>

#include "common/base/error.h"
#include "tests/support/temporary_files.h"

namespace dtf::launcher {

namespace fs = std::filesystem;

class CopySenderTest : public ::testing::Test {
 protected:
  void add(const std::string& name, const std::string& text) {
    files_.write(name, text);
    CopiedFile file;
    file.file = fs::absolute(name);
    file.offered.path = file.file;
    copied_->files.push_back(file);
  }
  CopySender sender() {
    FileDigests digests;
    digests.add(*copied_);
    while (digests.step()) {
    }
    return {copied_, "dir", 1000};
  }
  static std::string rest(CopySender& sender, size_t piece) {
    std::string all;
    for (std::string each = sender.nextPiece(piece); !each.empty();
         each = sender.nextPiece(piece)) {
      EXPECT_LE(each.size(), piece);
      all += each;
    }
    return all;
  }

  const testing::TemporaryFiles files_;
  const std::shared_ptr<CopiedFiles> copied_ = std::make_shared<CopiedFiles>();
};

TEST_F(CopySenderTest, SendsWhatIsLackingAndNothingElse) {
  for (const char* name : {"a", "b", "c", "d"}) add(name, std::string(3, *name));
  add("empty", "");
  CopySender sending = sender();
  const auto offer = sending.nextOffer();
  ASSERT_TRUE(offer);
  EXPECT_EQ(offer->dir, "dir");
  EXPECT_EQ(offer->bytes_max, 1000u);
  EXPECT_EQ(offer->files.size(), 5u);
  EXPECT_TRUE(offer->is_last);
  EXPECT_FALSE(sending.offeredAll());
  sending.take(LackingReport{{1, 3, 4}});
  EXPECT_FALSE(sending.nextOffer());
  EXPECT_EQ(sending.lackingBytes(), 6u);
  EXPECT_EQ(rest(sending, 4), "bbbddd");
  EXPECT_FALSE(sending.done());
  sending.take(StoredReport{6});
  EXPECT_TRUE(sending.done());
}

TEST_F(CopySenderTest, OffersManyFilesInTurns) {
  add("a", "text");
  copied_->files.resize(2500, copied_->files.front());
  copied_->folders.assign(1500, "/folder");
  CopySender sending = sender();
  size_t files = 0, folders = 0, offers = 0;
  while (const auto offer = sending.nextOffer()) {
    files += offer->files.size();
    folders += offer->folders.size();
    ++offers;
    EXPECT_LE(offer->files.size(), kOfferedFilesMax);
    EXPECT_EQ(offer->is_last, files == 2500 && folders == 1500);
    sending.take(LackingReport{offers == 3 ? std::vector<size_t>{0} : std::vector<size_t>{}});
  }
  EXPECT_EQ(files, 2500u);
  EXPECT_EQ(folders, 1500u);
  EXPECT_EQ(sending.lackingBytes(), 4u);
}

TEST_F(CopySenderTest, AnswersThatCantBeAreRefused) {
  add("a", "text");
  CopySender sending = sender();
  EXPECT_THROW(sending.take(LackingReport{}), Error) << "nothing was offered";
  sending.nextOffer();
  EXPECT_THROW(sending.take(LackingReport{{1}}), Error);
  CopySender other = sender();
  other.nextOffer();
  other.take(LackingReport{{0}});
  EXPECT_THROW(other.take(StoredReport{5}), Error);
  other.take(StoredReport{2});
  EXPECT_THROW(other.take(StoredReport{1}), Error);
}

TEST_F(CopySenderTest, AFileThatHasChangedSinceItsDigestIsNamed) {
  add("a", "text");
  CopySender sending = sender();
  sending.nextOffer();
  sending.take(LackingReport{{0}});
  fs::last_write_time("a", fs::last_write_time("a") + std::chrono::hours(1));
  try {
    sending.nextPiece(10);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadData);
    EXPECT_NE(error.message().find("/a: it changed while it was copied"), std::string::npos)
        << error.message();
  }
}

}  // namespace dtf::launcher
