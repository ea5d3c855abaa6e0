// Tables in text. The first byte chooses the options, the rest is the file. An accepted table has a
// finite number in every cell, and the reader of its header accepts it, too.

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "common/base/error.h"
#include "common/base/log.h"
#include "common/data/csv_reader.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/heap_bound.h"
#include "tests/fuzz/memory_path.h"

namespace {

bool allFinite(std::span<const float> values) {
  return std::all_of(values.begin(), values.end(),
                     [](float value) { return std::isfinite(value); });
}

// Finite numbers, or categories from 0.
bool areGood(const dtf::data::Part& part) {
  if (part.spec().dtype == dtf::DType::kFloat32) return allFinite(part.as<float>());
  const std::span<const int32_t> values = part.as<int32_t>();
  return std::all_of(values.begin(), values.end(), [](int32_t value) { return value >= 0; });
}

dtf::cluster::CsvSpec specOf(uint8_t choice) {
  dtf::cluster::CsvSpec spec;
  spec.header = (choice & 1) != 0;
  if ((choice & 2) != 0)
    spec.label = "1";
  else
    spec.targets = {"2", "1"};
  if ((choice & 4) != 0) spec.features = {"3"};
  if ((choice & 8) != 0) spec.class_names = {"a", "b"};
  if ((choice & 16) != 0) spec.delimiter = ';';
  if ((choice & 32) != 0) {
    spec.categorical = {{"hashed", {"4"}, 7}, {"numbers", {"5"}}};
    spec.no_features = (choice & 4) == 0;
  }
  spec.max_bad_records = choice >> 6;
  return spec;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const dtf::fuzz::HeapBound bound(size);
  using namespace dtf;
  // A warning for each bad record would take most of the time.
  static const bool quiet = (log::init("", log::Level::kError), true);
  fuzz::use(quiet);
  if (size == 0) return 0;
  const cluster::CsvSpec spec = specOf(data[0]);
  const fuzz::MemoryPath file(data + 1, size - 1);
  const std::vector<std::filesystem::path> files = {file.path()};
  std::optional<data::CsvHeader> header;
  const auto judged = [](const Error& error) {
    FUZZ_CHECK(error.code() == ErrorCode::kBadData || error.code() == ErrorCode::kBadConfig);
  };
  try {
    header = data::readCsvHeader(files, spec);
  } catch (const Error& error) {
    judged(error);
  }
  try {
    // With categories the training table is read first.
    const data::TrainedColumns* const trained =
        header && !spec.categorical.empty() ? &header->trained : nullptr;
    if (trained == nullptr && !spec.categorical.empty())
      throw Error(ErrorCode::kBadData, "there is no training table");
    const data::CsvExamples examples =
        data::readCsvExamples(file.path(), spec, 1 + data[0] % 4, trained);
    const data::Part& features = examples.features;
    FUZZ_CHECK(features.count() > 0 && areGood(features));
  } catch (const Error& error) {
    judged(error);
  }
  try {
    const data::Dataset table = data::readCsv(files, spec);
    FUZZ_CHECK(header && header->features == table.features().spec());
    FUZZ_CHECK(table.size() > 0);
    FUZZ_CHECK(static_cast<int64_t>(table.leftOut().size()) <= spec.max_bad_records);
    FUZZ_CHECK(areGood(table.features()));
    FUZZ_CHECK(table.categories().size() + spec.no_features == spec.categorical.size());
    for (const data::Part& part : table.categories()) FUZZ_CHECK(areGood(part));
    const data::Part& labels = table.labels();
    if (!data::areClasses(labels.spec())) {
      FUZZ_CHECK(allFinite(labels.as<float>()));
      return 0;
    }
    for (const int32_t label : labels.as<int32_t>())
      FUZZ_CHECK(label >= 0 && (spec.class_names.empty() || label < 2));
  } catch (const Error& error) {
    judged(error);
  }
  return 0;
}
