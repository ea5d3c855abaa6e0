#pragma once

// What products of float32 may round to.

#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace dtf::gpu {

// TF32 keeps 10 bits of the factors' mantissas, the tensor cores' way; sums stay float32.
enum class Precision : uint8_t { kFloat32, kTf32 };

// DTF_GPU_TF32=1 allows TF32, as it then must for all workers of a job.
inline Precision precisionAsked() {
  const char* const asked = std::getenv("DTF_GPU_TF32");
  return asked != nullptr && std::strcmp(asked, "1") == 0 ? Precision::kTf32 : Precision::kFloat32;
}

}  // namespace dtf::gpu
