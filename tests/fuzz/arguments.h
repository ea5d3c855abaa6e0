#pragma once

// The bytes of one call of a program (program.h) as its arguments.

#include <kj/string.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "tests/fuzz/rpc_world.h"

namespace dtf::fuzz {

// Returns 0 or nothing beyond the end.
// Borrows: the bytes.
class Arguments {
 public:
  explicit Arguments(std::string_view bytes) : left_(bytes) {}
  bool empty() const { return left_.empty(); }
  std::string_view rest() { return take(left_.size()); }
  std::string_view take(size_t count) {
    const std::string_view part = left_.substr(0, count);
    left_.remove_prefix(part.size());
    return part;
  }
  template <class T>
  T number() {
    T value{};
    const std::string_view part = take(sizeof value);
    if (!part.empty()) std::memcpy(&value, part.data(), part.size());
    return value;
  }
  uint8_t byte() { return number<uint8_t>(); }
  // Mostly small, as steps and ranks are; any number now and then.
  uint64_t count() {
    const uint8_t small = byte();
    return small < 250 ? small : number<uint64_t>();
  }
  kj::StringPtr text() {
    text_ = std::string(take(byte() % 40));
    return text_.c_str();
  }
  // The folder of a checkpoint: one that exists, or any.
  kj::StringPtr folder() {
    const uint8_t size = byte();
    if (size >= 240) return size % 2 == 0 ? kSaved : kAttempt;
    text_ = std::string(take(size % 40));
    return text_.c_str();
  }

 private:
  std::string_view left_;
  std::string text_;
};

}  // namespace dtf::fuzz
