// A whole ONNX file from a stranger, beside a file as large as it is. Accepted tensors are as large
// as their shapes.

#include "common/base/error.h"
#include "common/model_files/weight_reader.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/heap_bound.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const dtf::fuzz::HeapBound bound(size);
  using namespace dtf;
  uint64_t left = size;  // as ExternalData counts
  const auto beside = [&left](const model_files::OnnxPlace& place, uint64_t bytes) {
    if (!place.mistake.empty() || (place.length && *place.length != bytes) || bytes > left)
      throw Error(ErrorCode::kBadData, "the file beside it doesn't hold the tensor");
    left -= bytes;
    return std::string(bytes, 'x');
  };
  try {
    const model_files::FoundWeights found =
        model_files::parseOnnxWeights(fuzz::textOf(data, size), "input", beside);
    for (const model_files::FoundTensor& tensor : found.tensors) {
      FUZZ_CHECK(tensor.value.dtype() == DType::kFloat32);
      const size_t elements = tensor.value.as<float>().size();
      FUZZ_CHECK(elements * sizeof(uint16_t) <= size);  // it was in one of the files
      float sum = 0;
      for (const float value : tensor.value.as<float>()) sum += value;
      fuzz::use(sum);
    }
  } catch (const Error&) {
    return 0;
  }
  return 0;
}
