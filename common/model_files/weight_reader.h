#pragma once

// The tensors in a file of weights that another program wrote, to start from.
//
// Files are untrusted: sizes are compared with what the file holds before memory is taken for them.

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "common/model_files/trained_model.h"

namespace dtf::model_files {

struct FoundWeights {
  std::vector<NamedTensor> tensors;  // in dtf's order of dimensions
  std::vector<std::string> skipped;  // "bn1.num_batches_tracked: its type is I64, only F32 is read"
};

// By the ending: .safetensors, .npz or .onnx.
// Blocks: on the disk.
// Errors: kUsage for another ending; kBadData naming the file, and the tensor where it is one's fault;
// kPermission.
FoundWeights readWeights(const std::filesystem::path& file);

// The initializers of an ONNX model. The filters of a Conv are turned to [height, width, channels,
// filters], the matrix of a Gemm with transB to [inputs, outputs]. `name` is what messages call it.
// Errors: kBadData.
FoundWeights parseOnnxWeights(std::string_view bytes, const std::string& name);

}  // namespace dtf::model_files
