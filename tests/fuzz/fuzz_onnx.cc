// A whole ONNX file from a stranger. Accepted tensors are as large as their shapes.

#include "common/base/error.h"
#include "common/model_files/weight_reader.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/heap_bound.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const dtf::fuzz::HeapBound bound(size);
  using namespace dtf;
  try {
    const model_files::FoundWeights found =
        model_files::parseOnnxWeights(fuzz::textOf(data, size), "input");
    for (const model_files::FoundTensor& tensor : found.tensors) {
      FUZZ_CHECK(tensor.value.dtype() == DType::kFloat32);
      const size_t elements = tensor.value.as<float>().size();
      FUZZ_CHECK(elements * sizeof(float) <= size);  // it was in the file
      float sum = 0;
      for (const float value : tensor.value.as<float>()) sum += value;
      fuzz::use(sum);
    }
  } catch (const Error&) {
    return 0;
  }
  return 0;
}
