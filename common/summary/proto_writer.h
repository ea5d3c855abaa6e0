#pragma once

// Protocol buffers' wire format, as much of it as TensorFlow's event files need. Only writing, and
// only what is written by hand: no schema, no reflection.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace dtf::summary {

// Builds one message, field by field, in the order of the calls. Value type.
// A field of its type's default value is written as well, where proto3 would leave it out: readers
// take both.
class ProtoWriter {
 public:
  void integer(uint32_t field, int64_t value);         // int32, int64, bool, enum
  void number(uint32_t field, double value);           // double
  void single(uint32_t field, float value);            // float
  void bytes(uint32_t field, std::string_view value);  // string, bytes
  void message(uint32_t field, const ProtoWriter& value) { bytes(field, value.encoded()); }
  void packed(uint32_t field, std::span<const double> values);  // repeated double

  const std::string& encoded() const { return encoded_; }

 private:
  void varint(uint64_t value);
  void key(uint32_t field, uint32_t wire_type);
  template <class T>
  void fixed(T value);

  std::string encoded_;
};

}  // namespace dtf::summary
