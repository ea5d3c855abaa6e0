// CIFAR-10's binary files, plain and packed. The count that is reported before a job starts is the
// number of records that are read.

#include <optional>
#include <vector>

#include "common/base/error.h"
#include "common/data/cifar10_reader.h"
#include "common/data/label_check.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/heap_bound.h"
#include "tests/fuzz/memory_path.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const dtf::fuzz::HeapBound bound(size);
  using namespace dtf;
  const fuzz::MemoryPath file(data, size);
  std::optional<int64_t> count;
  try {
    count = data::readCifar10Count(file.path());
    FUZZ_CHECK(*count > 0);
  } catch (const Error& error) {
    FUZZ_CHECK(error.code() == ErrorCode::kBadData);
  }
  try {
    const std::vector<std::filesystem::path> files = {file.path(), file.path()};
    const data::Dataset dataset = data::readCifar10(files);
    FUZZ_CHECK(count && dataset.size() == 2 * *count);
    FUZZ_CHECK(data::classesOf(dataset.labels()) <= data::kCifar10Classes);
  } catch (const Error& error) {
    FUZZ_CHECK(!count && error.code() == ErrorCode::kBadData);
  }
  return 0;
}
