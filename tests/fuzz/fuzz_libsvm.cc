// libsvm files. The first byte chooses the options, the rest is the file. An accepted file has
// finite numbers, and as many lines are counted as records are read.

#include <algorithm>
#include <cmath>
#include <vector>

#include "common/base/error.h"
#include "common/base/log.h"
#include "common/data/label_check.h"
#include "common/data/libsvm_reader.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/heap_bound.h"
#include "tests/fuzz/memory_path.h"

namespace {

using dtf::data::Part;

constexpr int64_t kWidth = 6;

bool allFinite(const Part& part) {
  return std::ranges::all_of(part.as<float>(), [](float value) { return std::isfinite(value); });
}

dtf::cluster::DatasetSpec specOf(uint8_t choice) {
  dtf::cluster::DatasetSpec spec;
  spec.format = dtf::cluster::DatasetSpec::Format::kLibsvm;
  spec.libsvm.shape = {kWidth};
  spec.libsvm.zero_based = (choice & 1) != 0;
  spec.libsvm.are_targets = (choice & 2) != 0;
  if ((choice & 4) != 0) spec.csv.class_names = {"-1", "2"};
  spec.csv.max_bad_records = choice >> 6;
  return spec;
}

template <class Read>
void judged(const Read& read) {
  try {
    read();
  } catch (const dtf::Error& error) {
    FUZZ_CHECK(error.code() == dtf::ErrorCode::kBadData);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const dtf::fuzz::HeapBound bound(size);
  using namespace dtf;
  static const bool quiet = (log::init("", log::Level::kError), true);
  fuzz::use(quiet);
  if (size == 0) return 0;
  cluster::DatasetSpec spec = specOf(data[0]);
  const fuzz::MemoryPath file(data + 1, size - 1);
  spec.files = {file.path()};
  judged([&] {
    const data::Dataset dataset = data::readLibsvm(spec);
    const auto bad = static_cast<int64_t>(dataset.leftOut().size());
    FUZZ_CHECK(dataset.size() > 0 && bad <= spec.csv.max_bad_records);
    FUZZ_CHECK(data::countLibsvm(spec.files) == dataset.size() + bad);
    FUZZ_CHECK(allFinite(dataset.features()));
    if (spec.libsvm.are_targets)
      FUZZ_CHECK(allFinite(dataset.labels()));
    else
      FUZZ_CHECK(data::classesOf(dataset.labels()) > 0);
  });
  judged([&] {
    const data::UnlabelledExamples examples = data::readLibsvmFeatures(file.path(), spec);
    FUZZ_CHECK(examples.features.count() > 0 && allFinite(examples.features));
  });
  judged([&] {
    const data::LibsvmFacts facts = data::readLibsvmFacts(file.path());
    FUZZ_CHECK(facts.examples > 0 && facts.width >= 0 && facts.width <= data::kLibsvmIndexMax + 1);
  });
  fuzz::use(data::looksLikeLibsvm({reinterpret_cast<const char*>(data), size}));
  return 0;
}
