#pragma once

#include <string>

namespace dtf::gpu {

// Returns the libraries of this build: "CUDA 13.0, cuDNN 9.19.0, cuBLASLt 13.1.0".
std::string backendText();

}  // namespace dtf::gpu
