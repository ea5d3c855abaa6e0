#include "launcher/init/image_profile.h"

#include <gmock/gmock.h>

#include "common/data/png_encoder.h"
#include "tests/unit/launcher/init/init_fixture.h"

namespace dtf::launcher {
namespace {

using ::testing::HasSubstr;

class ImageProfileTest : public InitTest {
 protected:
  void draw(const std::string& name, int64_t height, int64_t width, int64_t channels = 1) {
    std::vector<uint8_t> pixels(static_cast<size_t>(height * width * channels));
    for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(i);
    std::filesystem::create_directories(path(name).parent_path());
    folder_.write(name, data::encodePng(height, width, channels, pixels));
  }
  ImagesProfile profile() { return profileImages(folder_.path()); }
};

TEST_F(ImageProfileTest, SmallImagesOfOneSizeStayAsTheyAre) {
  draw("b/1.png", 16, 20);
  draw("a/1.png", 16, 20);
  draw("a/2.png", 16, 20);
  const ImagesProfile found = profile();
  EXPECT_EQ(found.classes, (std::vector<WordCount>{{"a", 2}, {"b", 1}}));
  EXPECT_EQ(found.height, 16);
  EXPECT_EQ(found.width, 20);
  EXPECT_EQ(found.channels, 1);
  EXPECT_TRUE(found.one_size && found.one_shape);
}

TEST_F(ImageProfileTest, LargeImagesBecomeSmallerInTheirShape) {
  draw("a/1.png", 100, 200, 3);
  draw("a/2.png", 50, 100, 3);
  draw("b/1.png", 100, 200, 3);
  const ImagesProfile found = profile();
  EXPECT_EQ(found.height, 32);
  EXPECT_EQ(found.width, 64);
  EXPECT_EQ(found.channels, 3);
  EXPECT_FALSE(found.one_size);
  EXPECT_TRUE(found.one_shape);
  draw("b/2.png", 100, 100, 3);
  EXPECT_FALSE(profile().one_shape);
}

TEST_F(ImageProfileTest, UnreadableImagesAreCounted) {
  draw("a/1.png", 8, 8);
  draw("b/1.png", 8, 8);
  folder_.write("b/2.png", "no image");
  const ImagesProfile found = profile();
  EXPECT_EQ(found.unread, 1);
  EXPECT_THAT(found.first_unread, HasSubstr("b/2.png"));
}

TEST_F(ImageProfileTest, FoldersToTrainAndToEvaluate) {
  draw("train/a/1.png", 8, 8);
  draw("train/b/1.png", 8, 8);
  draw("val/a/1.png", 8, 8);
  const ImagesProfile found = profile();
  EXPECT_EQ(found.folder, path("train"));
  EXPECT_EQ(found.eval_folder, path("val"));
  EXPECT_EQ(found.classes.size(), 2u);
}

TEST_F(ImageProfileTest, OneClassOrAnEmptyOneIsRefused) {
  draw("a/1.png", 8, 8);
  EXPECT_THAT(mistakeOf(ErrorCode::kBadData, [&] { profile(); }), HasSubstr("one subfolder"));
  std::filesystem::create_directory(path("b"));
  EXPECT_THAT(mistakeOf(ErrorCode::kBadData, [&] { profile(); }),
              HasSubstr("the subfolder 'b' is a class without an image"));
  folder_.write("b/1.png", "x");
  folder_.write("a/1.png", "x");
  EXPECT_THAT(mistakeOf(ErrorCode::kBadData, [&] { profile(); }),
              HasSubstr("no image can be read"));
}

}  // namespace
}  // namespace dtf::launcher
