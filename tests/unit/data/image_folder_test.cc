#include "common/data/image_folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>

#include "common/base/error.h"
#include "tests/unit/data/idx_files.h"
#include "tests/unit/data/image_files.h"

namespace dtf::data {
namespace {

// A folder of images of 4 x 4 pixels, which become 2 x 2.
class ImageFolderTest : public ::testing::Test {
 protected:
  ImageFolderTest() {
    spec_.folder.path = folder_.path();
    spec_.height = spec_.width = 2;
    spec_.channels = 1;
  }
  void write(const std::string& name, const std::string& bytes) const {
    std::filesystem::create_directories((folder_.path() / name).parent_path());
    folder_.write(name, bytes);
  }
  void writeGrey(const std::string& name, uint8_t grey) const {
    const std::vector<uint8_t> pixels = plain(16, {grey});
    const bool png = name.ends_with("png") || name.ends_with("PNG");
    write(name, png ? pngOf(4, 4, pixels, {PNG_COLOR_TYPE_GRAY}) : jpegOf(4, 4, 1, pixels));
  }
  std::string failure() const {
    try {
      readImageFolder(spec_);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kBadData);
      return error.message();
    }
    return "no error";
  }
  // Returns one grey and label for each example.
  std::string examples() const {
    const ImageTable table = readImageFolder(spec_);
    std::string text;
    for (int64_t i = 0; i < table.dataset.size(); ++i)
      text += std::to_string(table.dataset.features().of(i)[0]) + ":" +
              std::to_string(table.dataset.labels().as<int32_t>()[static_cast<size_t>(i)]) + " ";
    return text;
  }

  TemporaryFolder folder_;
  cluster::ImagesSpec spec_;
};

TEST_F(ImageFolderTest, ClassesAndFilesComeInOrderOfName) {
  writeGrey("b/1.png", 10);
  writeGrey("b/0.jpg", 20);
  writeGrey("a/x.PNG", 30);
  writeGrey("c/deep/er.jpeg", 40);
  writeGrey(".hidden/x.png", 50);
  writeGrey("b/.x.png", 60);
  write("b/notes.txt", "not an image");
  write("readme.md", "neither");
  EXPECT_EQ(examples(), "30:0 20:1 10:1 40:2 ");
  const ImageList list = listImages(spec_);
  EXPECT_EQ(list.class_names, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(list.others, 1);
  EXPECT_EQ(list.other.filename(), "notes.txt");
}

TEST_F(ImageFolderTest, ClassNamesSayTheOrder) {
  writeGrey("b/1.png", 10);
  writeGrey("a/x.png", 30);
  spec_.class_names = {"b", "a"};
  EXPECT_EQ(examples(), "10:0 30:1 ");
  spec_.class_names = {"b", "a", "c"};
  EXPECT_NE(failure().find(": it has no subfolder 'c', which is one of the class_names"),
            std::string::npos);
  spec_.class_names = {"b"};
  EXPECT_NE(failure().find(": its subfolder 'a' is none of the class_names"), std::string::npos);
}

TEST_F(ImageFolderTest, ABadFileMayCostOneExample) {
  spec_.max_bad_records = 2;
  for (int i = 0; i < 9; ++i) writeGrey("a/" + std::to_string(i) + ".png", static_cast<uint8_t>(i));
  write("a/2.png", "GIF89a");
  write("a/5.png", pngOf(4, 4, plain(16, {5}), {PNG_COLOR_TYPE_GRAY}).substr(0, 50));
  EXPECT_EQ(examples(), "0:0 1:0 3:0 4:0 6:0 7:0 8:0 ");
  const ImageTable table = readImageFolder(spec_);
  ASSERT_EQ(table.dataset.leftOut().size(), 2u);
  EXPECT_EQ(table.dataset.leftOut()[1].index, 5);
  EXPECT_EQ(table.files.at(3), folder_.path() / "a/3.png") << "of records, whether good or not";
  EXPECT_EQ(readImageFolder(spec_).dataset.features().bytes().size(), 7u * 4);
  spec_.max_bad_records = 1;
  for (const char* part :
       {"2 of 9 images can't be read, and max_bad_records is 1",
        "a/2.png: this looks like a GIF image", "a/5.png: damaged PNG image: the file is cut off"})
    EXPECT_NE(failure().find(part), std::string::npos) << failure();
}

// Its name ends like a picture's, but its format isn't supported: skipping such files would
// silently drop half a folder.
TEST_F(ImageFolderTest, APictureOfAnotherKindIsABadFile) {
  writeGrey("a/0.png", 1);
  writeGrey("a/1.jfif", 2);
  EXPECT_EQ(examples(), "1:0 2:0 ") << "a JPEG by another name";
  write("a/2.gif", "GIF89a......");
  EXPECT_NE(
      failure().find("a/2.gif: this looks like a GIF image; expected a PNG, JPEG, WebP or BMP"),
      std::string::npos)
      << failure();
}

TEST_F(ImageFolderTest, AFolderWithoutImagesOrClassesIsRefused) {
  EXPECT_NE(failure().find(": it has no subfolders: each class is one"), std::string::npos);
  write("x.png", "");
  EXPECT_NE(failure().find(": it holds images, but no subfolders: put the images of each class"),
            std::string::npos);
  write("a/x.txt", "");
  EXPECT_NE(failure().find(": there is no image in its subfolders"), std::string::npos);
  write("a/x.png", "");
  EXPECT_NE(failure().find(": none of 1 images can be read"), std::string::npos);
  spec_.folder.path /= "missing";
  EXPECT_NE(failure().find("missing: cannot read the folder: No such file"), std::string::npos);
}

// More files than one round decodes, on several threads, with bad files among them.
TEST_F(ImageFolderTest, ManyFilesKeepTheirOrder) {
  std::string wanted;
  spec_.max_bad_records = 25;
  for (int i = 1000; i < 3500; ++i) {
    const std::string name = "a/" + std::to_string(i) + ".png";
    const bool bad = i % 100 == 7;
    if (bad) write(name, "bad");
    if (!bad) writeGrey(name, static_cast<uint8_t>(i));
    if (!bad) wanted += std::to_string(static_cast<uint8_t>(i)) + ":0 ";
  }
  EXPECT_EQ(examples(), wanted);
}

TEST_F(ImageFolderTest, FeaturesAloneAreOfOneFileOrOfAFolder) {
  writeGrey("b/1.png", 10);
  writeGrey("a.png", 30);
  const UnlabelledExamples one = readImageFeatures(folder_.path() / "b/1.png", spec_);
  EXPECT_EQ(one.features.count(), 1);
  EXPECT_EQ(one.files, std::vector<std::filesystem::path>{folder_.path() / "b/1.png"});
  const UnlabelledExamples all = readImageFeatures(folder_.path(), spec_);
  EXPECT_EQ(all.files, (std::vector<std::filesystem::path>{folder_.path() / "a.png",
                                                           folder_.path() / "b/1.png"}));
  const Part& part = all.features;
  EXPECT_EQ(part.spec().shape, (Shape{2, 2, 1}));
  ASSERT_EQ(part.count(), 2);
  EXPECT_EQ(part.of(0)[0], 30);
  EXPECT_EQ(part.of(1)[0], 10);
  write("a2.png", "bad");
  const UnlabelledExamples some = readImageFeatures(folder_.path(), spec_);
  EXPECT_EQ(some.features.count(), 2);
  ASSERT_EQ(some.unread.size(), 1u) << "each has its answer";
  EXPECT_EQ(some.unread[0].index, 1);
  EXPECT_EQ(some.files.at(1), folder_.path() / "a2.png");
}

// Neither would ever end: a pipe without a writer, a folder that contains itself.
TEST_F(ImageFolderTest, APipeIsLeftOutAndACircleRefused) {
  writeGrey("a/1.png", 10);
  ASSERT_EQ(::mkfifo((folder_.path() / "a/2.png").c_str(), 0600), 0);
  EXPECT_EQ(examples(), "10:0 ");
  EXPECT_EQ(listImages(spec_).others, 1);
  std::filesystem::create_directory_symlink(folder_.path() / "a", folder_.path() / "a/again");
  EXPECT_NE(failure().find("a link to a folder above it"), std::string::npos) << failure();
}

TEST_F(ImageFolderTest, FoldersThatAreLinkedAreRead) {
  const TemporaryFolder elsewhere;
  elsewhere.write("3.png", pngOf(4, 4, plain(16, {30}), {PNG_COLOR_TYPE_GRAY}));
  writeGrey("a/1.png", 10);
  std::filesystem::create_directory_symlink(elsewhere.path(), folder_.path() / "a/more");
  std::filesystem::create_directory_symlink(elsewhere.path(), folder_.path() / "b");
  EXPECT_EQ(examples(), "10:0 30:0 30:1 ");
}

// The file may be readable on other hosts: a worker that skipped it would train another model.
TEST_F(ImageFolderTest, AFileThatCannotBeReadEndsTheReading) {
  for (int i = 0; i < 40; ++i) writeGrey("a/" + std::to_string(i) + ".png", 10);
  std::filesystem::create_symlink("nothing", folder_.path() / "a/0000.png");
  EXPECT_EQ(failure(), "cannot read " + (folder_.path() / "a/0000.png").string() +
                           ": No such file or directory (2)");
}

}  // namespace
}  // namespace dtf::data
