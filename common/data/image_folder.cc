#include "common/data/image_folder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <cstring>
#include <exception>
#include <functional>
#include <new>
#include <string_view>
#include <system_error>
#include <utility>

#include "common/base/check.h"
#include "common/base/cores.h"
#include "common/base/error.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/text.h"
#include "common/base/thread.h"
#include "common/data/image_decoder.h"
#include "common/data/image_resize.h"
#include "common/yaml/sent_files.h"

namespace dtf::data {

namespace {

namespace fs = std::filesystem;
using cluster::ImagesSpec;

constexpr uint64_t kImagesBytesMax = uint64_t{1} << 40;
constexpr int64_t kImagesAtOnce = 1024;  // decoded between two checks of the bad ones
constexpr int kImageThreadsMax = 16;
constexpr int kFolderDepthMax = 16;
constexpr size_t kClassesShownMax = 10;  // in the log
constexpr char kEndingsRead[] = ".png, .jpg, .jpeg, .jpe, .jfif, .webp, .bmp";

[[noreturn]] void failFolder(const fs::path& folder, const std::string& why,
                             ErrorCode code = ErrorCode::kBadData) {
  throw Error(code, printable(folder.string() + ": " + why));
}

[[noreturn]] void failSystem(const fs::path& folder, const std::error_code& error) {
  const bool forbidden = error == std::errc::permission_denied;
  failFolder(folder, "cannot read the folder: " + error.message(),
             forbidden ? ErrorCode::kPermission : ErrorCode::kBadData);
}

bool isHidden(const fs::path& path) {
  return path.filename().native().starts_with('.');
}

// Whether the name is an image's, of any kind: a kind that can't be read is a bad record, not left
// out.
bool isNamedAsImage(const fs::path& path) {
  constexpr std::array<std::string_view, 20> kEndings = {
      ".png",  ".jpg",  ".jpeg", ".jpe", ".jfif", ".webp", ".bmp", ".gif", ".tif", ".tiff",
      ".heic", ".heif", ".avif", ".jp2", ".jxl",  ".svg",  ".ico", ".ppm", ".pgm", ".tga"};
  std::string ending = path.extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::find(kEndings.begin(), kEndings.end(), ending) != kEndings.end();
}

// Returns the entries in order of name; `deep`: with entries of folders below.
std::vector<fs::path> entriesOf(const fs::path& folder, bool deep) {
  std::error_code error;
  std::vector<fs::path> entries;
  const fs::path place =
      yaml::placeOfData(folder);  // a copy may be elsewhere, under the same names
  fs::recursive_directory_iterator at(place, fs::directory_options::follow_directory_symlink,
                                      error);
  for (; !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
    if (at.depth() > kFolderDepthMax)
      failFolder(folder,
                 fmt::format("folders more than {} deep, or a link to a folder above it: {}",
                             kFolderDepthMax, at->path().string()));
    const bool hidden = isHidden(at->path());
    if (hidden || !deep) at.disable_recursion_pending();
    if (!hidden) entries.push_back(folder / at->path().lexically_relative(place));
  }
  if (error) failSystem(folder, error);
  std::sort(entries.begin(), entries.end(),
            [](const fs::path& a, const fs::path& b) { return a.native() < b.native(); });
  return entries;
}

bool isFolder(const fs::path& path) {
  std::error_code gone;
  return fs::is_directory(yaml::placeOfData(path), gone);
}

// A pipe or a device would block its reader. A link to nothing is reported when it is read.
bool isReadable(const fs::path& path) {
  std::error_code gone;
  const fs::file_type type = fs::status(yaml::placeOfData(path), gone).type();
  return type == fs::file_type::regular || type == fs::file_type::not_found;
}

// Appends the images of a folder to `list`, with `label`.
void addImages(const fs::path& folder, int32_t label, ImageList& list) {
  for (fs::path& path : entriesOf(folder, true)) {
    if (isFolder(path)) continue;
    if (isNamedAsImage(path) && isReadable(path)) {
      list.files.push_back({std::move(path), label});
    } else if (list.others++ == 0) {
      list.other = std::move(path);
    }
  }
}

std::vector<std::string> subfoldersOf(const fs::path& folder) {
  std::vector<std::string> names;
  bool images = false;
  for (const fs::path& path : entriesOf(folder, false)) {
    if (isFolder(path)) names.push_back(path.filename().string());
    images = images || isNamedAsImage(path);
  }
  if (names.empty())
    failFolder(folder, images ? "it holds images, but no subfolders: put the images of each class "
                                "into a subfolder that is named as the class"
                              : "it has no subfolders: each class is one, with its images");
  return names;
}

void checkClassNames(const ImagesSpec& spec, const std::vector<std::string>& subfolders) {
  const auto missing = [](const std::vector<std::string>& of, const std::vector<std::string>& in) {
    return std::find_if(of.begin(), of.end(), [&in](const std::string& name) {
      return std::find(in.begin(), in.end(), name) == in.end();
    });
  };
  const std::vector<std::string>& names = spec.class_names;
  if (const auto name = missing(names, subfolders); name != names.end())
    failFolder(spec.folder.path,
               fmt::format("it has no subfolder '{}', which is one of the class_names", *name));
  if (const auto name = missing(subfolders, names); name != subfolders.end())
    failFolder(spec.folder.path,
               fmt::format("its subfolder '{}' is none of the class_names", *name));
}

// Reads one file into `to`. Returns the fault of the image; empty: it has none.
// Errors: a file that can't be read, perhaps only on this host, and a host without memory.
std::string readImage(const fs::path& path, const ImagesSpec& spec, std::span<uint8_t> to) {
  const fs::path place = yaml::placeOfData(path);
  std::error_code gone;
  const uintmax_t bytes_held = fs::file_size(place, gone);
  if (!gone && bytes_held > kImageFileBytesMax)
    return fmt::format("{}: {} bytes, at most {} are read", printable(path.string()), bytes_held,
                       kImageFileBytesMax);
  const std::string file = readFile(place, kImageFileBytesMax);
  const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(file.data()), file.size());
  try {
    const Image image = decodeImage(bytes, path.string(), spec.channels);
    resizeImage(image, spec.resize, spec.height, spec.width, to);
    return {};
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kBadData) throw;
    return error.message();
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::kUnavailable,
                path.string() + ": this host has no memory left to decode it");
  }
}

// Calls `each` with 0 to count - 1, from several threads. Rethrows the error of the first thread
// that failed.
void inThreads(int64_t count, const std::function<void(int64_t)>& each) {
  const int64_t threads = std::min<int64_t>(count, std::min(availableCores(), kImageThreadsMax));
  std::atomic<int64_t> next = 0;
  std::vector<std::exception_ptr> failures(static_cast<size_t>(std::max<int64_t>(threads, 1)));
  const auto work = [&](size_t thread) {
    try {
      for (int64_t i = next++; i < count; i = next++) each(i);
    } catch (...) {
      failures[thread] = std::current_exception();
      next = count;  // the others need not go on
    }
  };
  {
    std::vector<Thread> helpers;
    for (size_t thread = 1; thread < failures.size(); ++thread)
      helpers.emplace_back("read-images", [&work, thread] { work(thread); });
    work(0);
  }
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
}

// Reads the files of a list, in their order, and leaves out the bad ones.
// Borrows: its arguments.
class ListReader {
 public:
  // `bad_max`: so many may be bad.
  ListReader(const ImageList& list, const ImagesSpec& spec, int64_t bad_max)
      : list_(list), spec_(spec), bytes_(imageFeatures(spec).bytes()), bad_("images", bad_max) {
    uint64_t all = 0;
    if (__builtin_mul_overflow(uint64_t{list.files.size()}, uint64_t{bytes_}, &all) ||
        all > kImagesBytesMax)
      failFolder(spec.folder.path,
                 fmt::format("{} images of {} bytes are more than the {} bytes that are read",
                             list.files.size(), bytes_, kImagesBytesMax));
    pixels_ = ByteBlock(all);
  }

  void run() {
    const auto files = static_cast<int64_t>(list_.files.size());
    for (int64_t first = 0; first < files; first += kImagesAtOnce)
      readSome(first, std::min(kImagesAtOnce, files - first));
    bad_.finish(spec_.folder.path.string(), static_cast<int64_t>(labels_.size()));
    pixels_.shrinkTo(labels_.size() * bytes_);
  }

  ByteBlock pixels() { return std::move(pixels_); }
  const std::vector<int32_t>& labels() const { return labels_; }
  std::vector<BadRecord> bad() { return bad_.take(); }

 private:
  // Decodes images straight to their final places, and moves them only if one before them is bad.
  void readSome(int64_t first, int64_t count) {
    const auto kept = static_cast<int64_t>(labels_.size());
    DTF_CHECK(kept <= first);
    std::vector<std::string> wrong(static_cast<size_t>(count));
    inThreads(count, [&](int64_t i) {
      const ImageList::File& file = list_.files[static_cast<size_t>(first + i)];
      wrong[static_cast<size_t>(i)] = readImage(file.path, spec_, {imageAt(kept + i), bytes_});
    });
    for (int64_t i = 0; i < count; ++i) {
      if (!wrong[static_cast<size_t>(i)].empty()) {
        bad_.add({first + i, wrong[static_cast<size_t>(i)]});
        continue;
      }
      uint8_t* const to = imageAt(static_cast<int64_t>(labels_.size()));
      if (to != imageAt(kept + i)) std::memcpy(to, imageAt(kept + i), bytes_);
      labels_.push_back(list_.files[static_cast<size_t>(first + i)].label);
    }
  }

  uint8_t* imageAt(int64_t index) { return pixels_.data() + static_cast<size_t>(index) * bytes_; }

  const ImageList& list_;
  const ImagesSpec& spec_;
  const size_t bytes_;  // of one image
  ByteBlock pixels_;
  std::vector<int32_t> labels_;
  BadRecords bad_;
};

std::vector<fs::path> pathsOf(const ImageList& list) {
  std::vector<fs::path> paths;
  for (const ImageList::File& file : list.files) paths.push_back(file.path);
  return paths;
}

}  // namespace

PartSpec imageFeatures(const ImagesSpec& spec) {
  DTF_CHECK(spec.height > 0 && spec.width > 0 && (spec.channels == 1 || spec.channels == 3));
  return {kFeatures, DType::kUInt8, Shape{spec.height, spec.width, spec.channels}};
}

PartSpec imageLabels() {
  return {kLabels, DType::kInt32, Shape()};
}

std::vector<std::string> classFolders(const ImagesSpec& spec) {
  std::vector<std::string> subfolders = subfoldersOf(spec.folder.path);
  if (spec.class_names.empty()) return subfolders;
  checkClassNames(spec, subfolders);
  return spec.class_names;
}

ImageList listImages(const ImagesSpec& spec) {
  const fs::path& folder = spec.folder.path;
  ImageList list;
  list.class_names = classFolders(spec);
  for (size_t label = 0; label < list.class_names.size(); ++label)
    addImages(folder / list.class_names[label], static_cast<int32_t>(label), list);
  if (list.files.empty())
    failFolder(folder, fmt::format("there is no image in its subfolders ({})", kEndingsRead));
  return list;
}

ImageTable readImageFolder(const ImagesSpec& spec) {
  const ImageList list = listImages(spec);
  if (list.others > 0)
    log::warning("event=files_left_out files={} reason=\"no image by their names\" first=\"{}\"",
                 list.others, list.other.string());
  ListReader reader(list, spec, spec.max_bad_records);
  reader.run();
  const std::string source = spec.folder.path.string();
  const size_t shown = std::min(list.class_names.size(), kClassesShownMax);
  log::info("event=images folder=\"{}\" images={} classes={} first=\"{}\"", source,
            reader.labels().size(), list.class_names.size(),
            fmt::join(list.class_names.begin(),
                      list.class_names.begin() + static_cast<ptrdiff_t>(shown), ", "));
  ByteBlock labels(reader.labels().size() * sizeof(int32_t));
  std::memcpy(labels.data(), reader.labels().data(), labels.size());
  return {{{imageFeatures(spec), source, reader.pixels()},
           {imageLabels(), source, std::move(labels)},
           {},
           reader.bad()},
          pathsOf(list)};
}

UnlabelledExamples readImageFeatures(const fs::path& path, const ImagesSpec& spec) {
  ImagesSpec asked = spec;
  asked.folder.path = path;
  ImageList list;
  if (isFolder(path)) {
    addImages(path, 0, list);
    if (list.files.empty())
      failFolder(path, fmt::format("there is no image in it ({})", kEndingsRead));
  } else {
    list.files.push_back({path, 0});
  }
  ListReader reader(list, asked, kAllMayBeBad);
  reader.run();
  return {{imageFeatures(asked), path.string(), reader.pixels()},
          pathsOf(list),
          {},
          reader.bad(),
          {},
          {},
          list.others,
          list.other};
}

}  // namespace dtf::data
