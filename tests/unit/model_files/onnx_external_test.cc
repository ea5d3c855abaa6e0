#include "common/model_files/onnx_external.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "common/base/error.h"
#include "tests/support/process.h"

namespace dtf::model_files {
namespace {

using ::testing::HasSubstr;

class ExternalDataTest : public ::testing::Test {
 protected:
  ExternalDataTest() {
    std::filesystem::create_directories(folder_.path() + "/model/parts");
    folder_.write("secret", "secret");
    folder_.write("model/m.data", "0123456789");
    folder_.write("model/parts/p.data", "abcd");
  }

  std::string mistakeAt(const OnnxPlace& place, uint64_t bytes) {
    try {
      read(place, bytes);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kBadData);
      return error.message();
    }
    ADD_FAILURE() << "must throw";
    return "";
  }
  std::string read(const OnnxPlace& place, uint64_t bytes) {
    return ExternalData(folder_.path() + "/model/m.onnx").read(place, bytes);
  }

  testing::TemporaryFolder folder_;
};

TEST_F(ExternalDataTest, ReadsAPartOfAFileBesideTheModel) {
  EXPECT_EQ(read({"m.data", 2, 3, ""}, 3), "234");
  EXPECT_EQ(read({"./m.data", 8, {}, ""}, 2), "89");
  EXPECT_EQ(read({"parts/p.data", 0, {}, ""}, 4), "abcd");
  EXPECT_EQ(read({"m.data", 10, {}, ""}, 0), "");
}

// An untrusted model must not read other files of its user.
TEST_F(ExternalDataTest, LeavesOtherFilesAlone) {
  const std::string absolute = folder_.path() + "/secret";
  for (const std::string& location :
       {absolute, std::string("../secret"), std::string("parts/../../secret"), std::string(),
        std::string("m.data\0x", 8), std::string(2000, 'x')})
    EXPECT_THAT(mistakeAt({location, 0, {}, ""}, 1), HasSubstr("no file in the model's folder"));
  std::filesystem::create_symlink("../secret", folder_.path() + "/model/link");
  EXPECT_THAT(mistakeAt({"link", 0, {}, ""}, 1), HasSubstr("a link to a file outside"));
  std::filesystem::create_symlink("..", folder_.path() + "/model/up");
  EXPECT_THAT(mistakeAt({"up/secret", 0, {}, ""}, 1), HasSubstr("a link to a file outside"));
  EXPECT_THAT(mistakeAt({".", 0, {}, ""}, 1), HasSubstr("its data are in '.'"));
  std::filesystem::create_symlink("m.data", folder_.path() + "/model/inside");
  EXPECT_EQ(read({"inside", 0, {}, ""}, 1), "0");
}

TEST_F(ExternalDataTest, RefusesAFileThatIsMissingShortOrNoFile) {
  EXPECT_THAT(mistakeAt({"n.data", 0, {}, ""}, 1),
              HasSubstr("its data are in 'n.data', which isn't in"));
  EXPECT_THAT(mistakeAt({"m.data", 8, {}, ""}, 3),
              HasSubstr("which has 10 bytes; the tensor takes 3 from 8 on"));
  EXPECT_THAT(mistakeAt({"m.data", ~uint64_t{0}, {}, ""}, 1), HasSubstr("which has 10 bytes"));
  EXPECT_THAT(mistakeAt({"m.data", 0, 4, ""}, 8),
              HasSubstr("where it has 4 bytes; its shape takes 8"));
  EXPECT_THAT(mistakeAt({"m.data", 0, {}, "its offset 'x' is no number"}, 8),
              HasSubstr("and its offset 'x' is no number"));
  EXPECT_THAT(mistakeAt({"parts", 0, {}, ""}, 1), HasSubstr("isn't a regular file"));
  ASSERT_EQ(::mkfifo((folder_.path() + "/model/pipe").c_str(), 0600), 0);
  EXPECT_THAT(mistakeAt({"pipe", 0, {}, ""}, 1), HasSubstr("isn't a regular file"));
}

// A thousand tensors of the same bytes would take a thousand times the memory.
TEST_F(ExternalDataTest, TensorsShareNoBytes) {
  ExternalData data(folder_.path() + "/model/m.onnx");
  EXPECT_EQ(data.read({"m.data", 0, {}, ""}, 6), "012345");
  EXPECT_EQ(data.read({"parts/p.data", 0, {}, ""}, 4), "abcd");
  EXPECT_EQ(data.read({"m.data", 6, {}, ""}, 4), "6789");
  EXPECT_THROW(data.read({"m.data", 0, {}, ""}, 1), Error);
}

TEST_F(ExternalDataTest, AModelInTheWorkingFolderHasAFolder) {
  EXPECT_THROW(ExternalData("m.onnx").read({"no-such-file", 0, {}, ""}, 1), Error);
}

}  // namespace
}  // namespace dtf::model_files
