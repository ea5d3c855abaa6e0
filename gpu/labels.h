#pragma once

// Labels and indices of any type, checked when they are read.

#include <cstdint>

#include "gpu/bad_data.h"
#include "gpu/kernel.h"
#include "gpu/portable.h"

namespace dtf::gpu {

// A kernel's access to labels. Value type, passed to the device.
struct Labels {
  const std::byte* data = nullptr;
  Type type = Type::kInt32;
  int64_t classes = 0;
  int32_t source = 0;
  BadData* bad = nullptr;

  // Returns the label of `row`; reports it and returns 0 if it isn't in [0, classes).
  DTF_HOST_DEVICE int64_t at(int64_t row) const {
    if (type == Type::kFloat32) {
      const float value = reinterpret_cast<const float*>(data)[row];
      if (value >= 0 && value < static_cast<float>(classes) && value <= 0x1p31f &&
          value == static_cast<float>(static_cast<int64_t>(value)))
        return static_cast<int64_t>(value);
      raise(bad, source, row, static_cast<double>(value));
      return 0;
    }
    const int64_t label = type == Type::kUInt8   ? reinterpret_cast<const uint8_t*>(data)[row]
                          : type == Type::kInt32 ? reinterpret_cast<const int32_t*>(data)[row]
                                                 : reinterpret_cast<const int64_t*>(data)[row];
    if (label >= 0 && label < classes) return label;
    raise(bad, source, row, static_cast<double>(label));
    return 0;
  }
};

// The labels or indices among an operation's inputs. Value type.
class LabelInput {
 public:
  enum class Kind : uint8_t { kLabels, kIndices };
  // Errors: kBadConfig for float32 labels (indices may be float32), and for 2^31 classes or more.
  LabelInput(const Operation& operation, size_t input, int64_t classes, Kind kind = Kind::kLabels);
  void prepare(Device& device);
  Labels bound(Device& device, const Arguments& a) const;
  int64_t count() const { return count_; }

 private:
  size_t input_;
  int64_t count_;
  BadDataSource source_;
  Labels labels_;
};

}  // namespace dtf::gpu
