#include "launcher/init/image_profile.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/file.h"
#include "common/base/text.h"
#include "common/data/image_decoder.h"
#include "common/data/image_folder.h"
#include "common/yaml/error_at.h"

namespace dtf::launcher {

namespace {

namespace fs = std::filesystem;

constexpr int64_t kSideGrid = 8;  // of images that are made smaller

bool isFolderIn(const fs::path& folder, std::string_view name) {
  std::error_code ignored;
  return fs::is_directory(folder / name, ignored);
}

// A data set is often two folders of classes.
void findSides(ImagesProfile& profile) {
  constexpr std::array<std::string_view, 5> kEvalFolders = {"val", "valid", "validation", "eval",
                                                            "test"};
  const fs::path folder = profile.folder;
  if (!isFolderIn(folder, "train")) return;
  for (const std::string_view name : kEvalFolders) {
    if (!isFolderIn(folder, name)) continue;
    profile.folder = folder / "train";
    profile.eval_folder = folder / name;
    return;
  }
}

bool isGrey(const data::Image& image) {
  const uint8_t* const pixels = std::as_const(image.pixels).data();
  for (size_t i = 0; i + 2 < image.pixels.size(); i += 3)
    if (pixels[i] != pixels[i + 1] || pixels[i] != pixels[i + 2]) return false;
  return true;
}

// Sizes of the images that could be decoded.
struct ImageSizes {
  std::vector<int64_t> heights, widths;
  bool all_grey = true;
};

ImageSizes decodeSome(const data::ImageList& list, ImagesProfile& profile) {
  ImageSizes sizes;
  const auto all = static_cast<int64_t>(list.files.size());
  profile.looked_at = std::min(all, kImagesLookedAt);
  for (int64_t i = 0; i < profile.looked_at; ++i) {
    const fs::path& path = list.files[static_cast<size_t>(i * all / profile.looked_at)].path;
    try {
      const std::string bytes = readFile(path, data::kImageFileBytesMax);
      const data::Image image =
          data::decodeImage(std::span(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()),
                            path.string(), 3);
      sizes.heights.push_back(image.height);
      sizes.widths.push_back(image.width);
      sizes.all_grey = sizes.all_grey && isGrey(image);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kBadData) throw;
      if (profile.unread++ == 0) profile.first_unread = printable(error.message());
    }
  }
  return sizes;
}

int64_t medianOf(std::vector<int64_t> numbers) {
  DTF_CHECK(!numbers.empty());
  const auto middle = numbers.begin() + static_cast<ptrdiff_t>(numbers.size() / 2);
  std::nth_element(numbers.begin(), middle, numbers.end());
  return *middle;
}

// Large images are made smaller, to sides that pooling halves.
void chooseSize(ImagesProfile& profile, const ImageSizes& sizes) {
  DTF_CHECK(sizes.heights.size() == sizes.widths.size());
  constexpr double kSameShape = 1.1;
  const int64_t height = medianOf(sizes.heights), width = medianOf(sizes.widths);
  const double shape = static_cast<double>(width) / static_cast<double>(height);
  for (size_t i = 0; i < sizes.heights.size(); ++i) {
    const double own = static_cast<double>(sizes.widths[i]) / static_cast<double>(sizes.heights[i]);
    profile.one_size = profile.one_size && sizes.heights[i] == height && sizes.widths[i] == width;
    profile.one_shape = profile.one_shape && own < kSameShape * shape && shape < kSameShape * own;
  }
  const int64_t longest = std::max(height, width);
  if (longest <= kModelSideMax && profile.one_size) {
    profile.height = height;
    profile.width = width;
    return;
  }
  const double factor =
      std::min(1.0, static_cast<double>(kModelSideMax) / static_cast<double>(longest));
  const auto side = [factor](int64_t pixels) {
    const double scaled = factor * static_cast<double>(pixels) / static_cast<double>(kSideGrid);
    return std::max<int64_t>(kSideGrid, kSideGrid * std::llround(scaled));
  };
  profile.height = side(height);
  profile.width = side(width);
  profile.one_size = profile.one_size && profile.height == height && profile.width == width;
}

}  // namespace

ImagesProfile profileImages(const fs::path& folder) {
  ImagesProfile profile;
  profile.folder = folder;
  findSides(profile);
  cluster::ImagesSpec spec;
  spec.folder = {profile.folder, {}};
  const data::ImageList list = data::listImages(spec);
  for (const std::string& name : list.class_names) profile.classes.emplace_back(name, 0);
  for (const data::ImageList::File& file : list.files)
    ++profile.classes.at(static_cast<size_t>(file.label)).second;
  profile.images = static_cast<int64_t>(list.files.size());
  const auto fail = [&](const std::string& why) {
    throw yaml::ErrorAt(ErrorCode::kBadData, {printable(profile.folder.string()), 0, 0}, why);
  };
  if (profile.classes.size() < 2)
    fail(
        "there is one subfolder, so all images are of one class: put the images of each class into "
        "a subfolder of their own");
  for (const auto& [name, images] : profile.classes)
    if (images == 0)
      fail("the subfolder '" + printable(name) +
           "' is a class without an image: remove it, or put its images there");
  const ImageSizes sizes = decodeSome(list, profile);
  if (sizes.heights.empty()) fail("no image can be read: " + profile.first_unread);
  profile.channels = sizes.all_grey ? 1 : 3;
  chooseSize(profile, sizes);
  return profile;
}

}  // namespace dtf::launcher
