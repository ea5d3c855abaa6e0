// The binary files of CIFAR-10 and CIFAR-100, plain and packed. The count that is reported before a
// job starts is the number of records that are read.

#include <optional>
#include <vector>

#include "common/base/error.h"
#include "common/data/cifar_reader.h"
#include "common/data/label_check.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/heap_bound.h"
#include "tests/fuzz/memory_path.h"

namespace {

void readAs(const dtf::data::CifarLabels& labels, const std::filesystem::path& path) {
  using namespace dtf;
  std::optional<int64_t> count;
  try {
    count = data::readCifarCount(path, labels);
    FUZZ_CHECK(*count > 0);
  } catch (const Error& error) {
    FUZZ_CHECK(error.code() == ErrorCode::kBadData);
  }
  try {
    const std::vector<std::filesystem::path> files = {path, path};
    const data::Dataset dataset = data::readCifar(files, labels);
    FUZZ_CHECK(count && dataset.size() == 2 * *count);
    FUZZ_CHECK(data::classesOf(dataset.labels()) <= labels.classesToLearn());
  } catch (const Error& error) {
    FUZZ_CHECK(!count && error.code() == ErrorCode::kBadData);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const dtf::fuzz::HeapBound bound(size);
  const dtf::fuzz::MemoryPath file(data, size);
  readAs({}, file.path());
  readAs({"CIFAR-100", 2, 1, {20, 100}}, file.path());
  return 0;
}
