#include "common/data/npy_dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/data/zip_archive.h"
#include "common/yaml/error_at.h"

namespace dtf::data {

namespace {

using cluster::DataFile;
using cluster::DatasetSpec;
using cluster::FeaturesAs;
using cluster::NpySpec;

constexpr size_t kFeatureDimsMax = 4;  // with the examples'

[[noreturn]] void failAt(const DataFile& file, ErrorCode code, const std::string& why) {
  throw yaml::ErrorAt(code, file.mark, why);
}

// The files, or the archive, that hold the arrays.
// Borrows: the description.
class NpySource {
 public:
  explicit NpySource(const DatasetSpec& spec) : npy_(spec.npy) {
    DTF_CHECK(spec.format == DatasetSpec::Format::kNpy || spec.format == DatasetSpec::Format::kNpz);
    if (spec.format != DatasetSpec::Format::kNpz) return;
    blame(npy_.archive, [&] { archive_ = std::make_unique<ZipArchive>(npy_.archive.path); });
  }

  std::string nameOf(const DataFile& file) const {
    return archive_ ? npy_.archive.path.string() + ": " + file.path.string() : file.path.string();
  }
  bool has(const DataFile& file) const {
    if (!archive_) return true;
    const std::vector<std::string> names = archive_->names();
    return std::find(names.begin(), names.end(), nameInArchive(file)) != names.end();
  }
  NpyHeader header(const DataFile& file) const {
    NpyHeader header;
    blame(file, [&] {
      if (!archive_) {
        header = readNpyHeader(file.path);
        return;
      }
      const ZipArchive::Beginning beginning =
          archive_->readBeginning(nameInArchive(file), kNpyHeaderBytesMax);
      header = parseNpyHeader(beginning.bytes, beginning.whole_bytes, nameOf(file));
    });
    return header;
  }
  NpyArray array(const DataFile& file) const {
    NpyArray array;
    blame(file, [&] {
      if (!archive_) {
        array = readNpy(file.path);
        return;
      }
      const ByteBlock bytes = archive_->read(nameInArchive(file), kNpyBytesMax);
      array = parseNpy({bytes.data(), bytes.size()}, nameOf(file));
    });
    return array;
  }

 private:
  static std::string nameInArchive(const DataFile& file) { return file.path.string() + ".npy"; }
  // Reports the error of an array at the key that names it.
  template <class Read>
  static void blame(const DataFile& file, const Read& read) {
    try {
      read();
    } catch (const Error& error) {
      failAt(file, error.code(), error.message());
    }
  }

  const NpySpec& npy_;
  std::unique_ptr<ZipArchive> archive_;
};

// The part that an array becomes.
struct Wanted {
  const DataFile& file;
  std::string name;  // of the array, for messages
  PartSpec part;
};

Wanted wantFeatures(const NpySource& source, const NpySpec& npy, const NpyHeader& header) {
  const std::string name = source.nameOf(npy.features);
  if (header.dims.empty() || header.dims.size() > kFeatureDimsMax)
    failAt(npy.features, ErrorCode::kBadData,
           fmt::format("{}: the array has {} dimensions; the first counts the examples, and each "
                       "has 0 to 3",
                       name, header.dims.size()));
  if (header.type == NpyType::kUInt8 && !npy.features_as)
    failAt(npy.features, ErrorCode::kBadConfig,
           fmt::format("{}: are these bytes pixels? Say 'features_as: pixels' (the model divides "
                       "them by 255) or 'features_as: float32' (as they are)",
                       name));
  const FeaturesAs as = npy.features_as.value_or(FeaturesAs::kFloat32);
  if (as == FeaturesAs::kPixels && header.type != NpyType::kUInt8)
    failAt(npy.features, ErrorCode::kBadConfig,
           fmt::format("{}: the elements are {}, but features_as wants pixels, which are uint8",
                       name, npyTypeName(header.type)));
  return {npy.features, name, {kFeatures, npy.featuresType(), header.exampleShape()}};
}

Wanted wantLabels(const NpySource& source, const NpySpec& npy, const NpyHeader& header) {
  const bool targets = !npy.targets.path.empty();
  const DataFile& file = targets ? npy.targets : npy.labels;
  const std::string name = source.nameOf(file);
  const bool floats = header.type == NpyType::kFloat32 || header.type == NpyType::kFloat64;
  const bool one_each = header.dims.size() == 1 || (header.dims.size() == 2 && header.dims[1] == 1);
  // Checked before the type: argmax returns whole numbers.
  if (!one_each && !(targets && header.dims.size() == 2))
    failAt(file, ErrorCode::kBadData,
           fmt::format("{}: the array has {} dimensions, {}", name, header.dims.size(),
                       targets ? "targets have 1 or 2"
                               : "labels have 1: of one-hot labels save a.argmax(1); numbers "
                                 "to learn are named by 'targets'"));
  if (!targets && floats)
    failAt(file, ErrorCode::kBadConfig,
           fmt::format("{}: the elements are {}, but classes are whole numbers: save them with "
                       "a.astype('int64'); numbers to learn are named by 'targets'",
                       name, npyTypeName(header.type)));
  const Shape shape = targets ? header.exampleShape() : Shape();
  return {file, name, {kLabels, targets ? DType::kFloat32 : DType::kInt32, shape}};
}

Wanted wantCategories(const NpySource& source, const cluster::CategoricalArray& array,
                      const NpyHeader& header) {
  const std::string name = source.nameOf(array.array);
  if (header.type == NpyType::kFloat32 || header.type == NpyType::kFloat64)
    failAt(array.array, ErrorCode::kBadConfig,
           fmt::format("{}: the elements are {}, but categories are whole numbers: save them with "
                       "a.astype('int64')",
                       name, npyTypeName(header.type)));
  const bool one_each = array.count == 1 && header.dims.size() == 1;
  if (!one_each && (header.dims.size() != 2 || header.dims[1] != array.count))
    failAt(array.array, ErrorCode::kBadData,
           fmt::format("{}: each example has {}, but 'count' of {} is {}", name,
                       header.dims.empty() ? "nothing" : header.exampleShape().str(), array.name,
                       array.count));
  return {array.array, name, {array.name, DType::kInt32, Shape{array.count}}};
}

void checkCounts(const Wanted& features, const NpyHeader& feature_header, const Wanted& labels,
                 const NpyHeader& label_header) {
  if (feature_header.count() != label_header.count())
    failAt(labels.file, ErrorCode::kBadData,
           fmt::format("{}: {} examples, but {} has {}: the two arrays don't belong together",
                       labels.name, label_header.count(), features.name, feature_header.count()));
  if (feature_header.count() == 0 || features.part.bytes() == 0 || labels.part.bytes() == 0)
    failAt(features.file, ErrorCode::kBadData, features.name + ": the array is empty");
}

void checkCount(const Wanted& categories, const NpyHeader& header, int64_t examples) {
  if (header.count() != examples)
    failAt(categories.file, ErrorCode::kBadData,
           fmt::format("{}: {} examples, but the features have {}: the two arrays don't belong "
                       "together",
                       categories.name, header.count(), examples));
}

template <class T>
T elementAt(const uint8_t* bytes, uint64_t index) {
  T value;
  std::memcpy(&value, bytes + index * sizeof(T), sizeof(T));
  return value;
}

// Returns the same number as a `To`; nullopt: there is none.
template <class To, class From>
std::optional<To> sameNumber(From value) {
  if constexpr (std::is_same_v<To, int32_t> && std::is_floating_point_v<From>) {
    // A float has every whole number up to here, so it can't be another one, rounded.
    constexpr double kExactMax =
        std::is_same_v<From, float> ? (int64_t{1} << 24) - 1 : std::numeric_limits<int32_t>::max();
    const double number = value;
    if (!(number >= 0 && number <= kExactMax) || number != std::floor(number)) return std::nullopt;
    return static_cast<int32_t>(number);
  } else if constexpr (std::is_same_v<To, int32_t>) {
    if (int64_t{value} < 0 || int64_t{value} > std::numeric_limits<int32_t>::max())
      return std::nullopt;
    return static_cast<int32_t>(value);
  } else if constexpr (std::is_floating_point_v<From>) {
    const auto number = static_cast<float>(value);
    return std::isfinite(number) ? std::optional(number) : std::nullopt;
  } else {
    constexpr int64_t kExactMax = int64_t{1} << 24;
    if (int64_t{value} < -kExactMax || int64_t{value} > kExactMax) return std::nullopt;
    return static_cast<float>(value);
  }
}

// Elements of the right type are checked and left in place.
template <class To, class From>
ByteBlock convertElements(NpyArray& array, const Wanted& wanted) {
  const uint8_t* const from = std::as_const(array.bytes).data();
  const uint64_t count = array.bytes.size() / sizeof(From);
  const bool stays =
      std::is_same_v<To, From> && reinterpret_cast<uintptr_t>(from) % alignof(To) == 0;
  ByteBlock converted(stays ? 0 : count * sizeof(To));
  for (uint64_t i = 0; i < count; ++i) {
    const From value = elementAt<From>(from, i);
    const std::optional<To> number = sameNumber<To>(value);
    if (!number)
      failAt(
          wanted.file, ErrorCode::kBadData,
          fmt::format("{}: example {} has {}, which is no {}{}", wanted.name,
                      i / static_cast<uint64_t>(wanted.part.shape.elements()), value,
                      std::is_same_v<To, float>     ? "number that a float32 holds"
                      : std::is_same_v<From, float> ? "whole number from 0 that float32 has: "
                                                      "from 16777216 on it lacks some; save int64"
                                                    : "whole number from 0 to 2147483647",
                      wanted.part.name == kLabels && wanted.part.dtype == DType::kInt32
                          ? ", as classes are: number them, as np.unique(a, "
                            "return_inverse=True)[1] does"
                          : ""));
    if (!stays) std::memcpy(converted.data() + i * sizeof(To), &*number, sizeof(To));
  }
  return stays ? std::move(array.bytes) : std::move(converted);
}

Part convert(NpyArray array, const Wanted& wanted) {
  const auto part = [&](ByteBlock bytes) {
    return Part(wanted.part, wanted.name, std::move(bytes));
  };
  const NpyType type = array.header.type;
  if (wanted.part.dtype == DType::kUInt8) return part(std::move(array.bytes));
  if (wanted.part.dtype == DType::kInt32) {
    if (type == NpyType::kUInt8) return part(convertElements<int32_t, uint8_t>(array, wanted));
    if (type == NpyType::kInt32) return part(convertElements<int32_t, int32_t>(array, wanted));
    if (type == NpyType::kFloat32) return part(convertElements<int32_t, float>(array, wanted));
    if (type == NpyType::kFloat64) return part(convertElements<int32_t, double>(array, wanted));
    DTF_CHECK(type == NpyType::kInt64);
    return part(convertElements<int32_t, int64_t>(array, wanted));
  }
  DTF_CHECK(wanted.part.dtype == DType::kFloat32);
  switch (type) {
    case NpyType::kFloat32:
      return part(convertElements<float, float>(array, wanted));
    case NpyType::kFloat64:
      return part(convertElements<float, double>(array, wanted));
    case NpyType::kUInt8:
      return part(convertElements<float, uint8_t>(array, wanted));
    case NpyType::kInt32:
      return part(convertElements<float, int32_t>(array, wanted));
    case NpyType::kInt64:
      return part(convertElements<float, int64_t>(array, wanted));
  }
  DTF_CHECK_MSG(false, std::to_string(static_cast<int>(type)));
}

const DataFile& labelFile(const NpySpec& npy) {
  return npy.targets.path.empty() ? npy.labels : npy.targets;
}

// Returns the parts of Dataset::categories().
std::vector<Part> readCategories(const NpySource& source, const NpySpec& npy, int64_t examples) {
  std::vector<Part> parts;
  for (const cluster::CategoricalArray& each : npy.categorical) {
    NpyArray array = source.array(each.array);
    const Wanted wanted = wantCategories(source, each, array.header);
    checkCount(wanted, array.header, examples);
    parts.push_back(convert(std::move(array), wanted));
  }
  return parts;
}

template <class T>
std::vector<std::string> elementTexts(const NpyArray& array) {
  std::vector<std::string> texts(array.bytes.size() / sizeof(T));
  for (size_t i = 0; i < texts.size(); ++i)
    texts[i] = fmt::format("{}", elementAt<T>(array.bytes.data(), i));
  return texts;
}

// Returns UnlabelledExamples::truths. They may be what no job learns: -1 for an unknown class.
std::vector<std::string> readTruths(const NpySource& source, const NpySpec& npy, int64_t examples) {
  const DataFile& file = labelFile(npy);
  if (!source.has(file)) return {};
  const NpyArray array = source.array(file);
  if (array.header.count() != examples)
    failAt(file, ErrorCode::kBadData,
           fmt::format("{}: {} examples, but the features have {}: the two arrays don't belong "
                       "together",
                       source.nameOf(file), array.header.count(), examples));
  switch (array.header.type) {
    case NpyType::kFloat32:
      return elementTexts<float>(array);
    case NpyType::kFloat64:
      return elementTexts<double>(array);
    case NpyType::kUInt8:
      return elementTexts<uint8_t>(array);
    case NpyType::kInt32:
      return elementTexts<int32_t>(array);
    case NpyType::kInt64:
      return elementTexts<int64_t>(array);
  }
  DTF_CHECK_MSG(false, std::to_string(static_cast<int>(array.header.type)));
}

}  // namespace

NpyParts readNpyParts(const DatasetSpec& spec) {
  const NpySource source(spec);
  const NpyHeader features = source.header(spec.npy.features);
  const NpyHeader labels = source.header(labelFile(spec.npy));
  const Wanted wanted = wantFeatures(source, spec.npy, features);
  const Wanted wanted_labels = wantLabels(source, spec.npy, labels);
  checkCounts(wanted, features, wanted_labels, labels);
  for (const cluster::CategoricalArray& each : spec.npy.categorical) {
    const NpyHeader header = source.header(each.array);
    checkCount(wantCategories(source, each, header), header, features.count());
  }
  return {features.count(), wanted.part, wanted_labels.part};
}

Dataset readNpyDataset(const DatasetSpec& spec) {
  const NpySource source(spec);
  NpyArray labels = source.array(labelFile(spec.npy));
  NpyArray features = source.array(spec.npy.features);
  const Wanted wanted = wantFeatures(source, spec.npy, features.header);
  const Wanted wanted_labels = wantLabels(source, spec.npy, labels.header);
  checkCounts(wanted, features.header, wanted_labels, labels.header);
  std::vector<Part> categories = readCategories(source, spec.npy, features.header.count());
  Part label_part = convert(std::move(labels), wanted_labels);
  return {convert(std::move(features), wanted), std::move(label_part), std::move(categories)};
}

UnlabelledExamples readNpzExamples(const std::filesystem::path& file, const DatasetSpec& like) {
  DTF_CHECK(like.format == DatasetSpec::Format::kNpz);
  DatasetSpec spec = like;
  spec.npy.archive.path = file;
  const NpySource source(spec);
  NpyArray array = source.array(spec.npy.features);
  const Wanted wanted = wantFeatures(source, spec.npy, array.header);
  if (array.bytes.size() == 0)
    throw Error(ErrorCode::kBadData, file.string() + ": the array is empty");
  std::vector<Part> categories = readCategories(source, spec.npy, array.header.count());
  std::vector<std::string> truths = readTruths(source, spec.npy, array.header.count());
  return {convert(std::move(array), wanted), {}, std::move(categories), {}, std::move(truths)};
}

Part readNpyFeatures(const std::filesystem::path& file, const DatasetSpec& like) {
  DatasetSpec spec = like;
  spec.format = DatasetSpec::Format::kNpy;
  spec.npy.features = {file, {}};
  if (!spec.npy.features_as && like.featuresType() == DType::kUInt8)
    spec.npy.features_as = FeaturesAs::kPixels;
  const NpySource source(spec);
  NpyArray array = source.array(spec.npy.features);
  if (like.featuresType() == DType::kUInt8 && array.header.type != NpyType::kUInt8)
    throw Error(ErrorCode::kBadConfig,
                fmt::format("{}: the elements are {}, but the job's model reads uint8 pixels",
                            file.string(), npyTypeName(array.header.type)));
  const Wanted wanted = wantFeatures(source, spec.npy, array.header);
  if (array.bytes.size() == 0)
    throw Error(ErrorCode::kBadData, file.string() + ": the array is empty");
  return convert(std::move(array), wanted);
}

}  // namespace dtf::data
