#pragma once

// Reads a message's fields by the rules of the wire format, as the reference for the tests.

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace dtf::summary {

struct ProtoField {
  uint32_t number = 0;
  uint32_t wire_type = 0;
  uint64_t integer = 0;  // wire types 0, 1 and 5: the value's bits
  std::string bytes;     // wire type 2
  double number64() const {
    double value = 0;
    std::memcpy(&value, &integer, sizeof value);
    return value;
  }
  float number32() const {
    float value = 0;
    std::memcpy(&value, &integer, sizeof value);
    return value;
  }
};

inline uint64_t readVarint(std::string_view& bytes) {
  uint64_t value = 0;
  for (int shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
    const auto byte = static_cast<uint8_t>(bytes.front());
    bytes.remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  ADD_FAILURE() << "an endless varint";
  return value;
}

inline std::vector<ProtoField> readProto(std::string_view bytes) {
  std::vector<ProtoField> fields;
  while (!bytes.empty()) {
    const uint64_t key = readVarint(bytes);
    ProtoField field{static_cast<uint32_t>(key >> 3), static_cast<uint32_t>(key & 7), 0, {}};
    size_t size = field.wire_type == 1 ? 8 : field.wire_type == 5 ? 4 : 0;
    if (field.wire_type == 0 || field.wire_type == 2) field.integer = readVarint(bytes);
    if (field.wire_type == 2) size = field.integer;
    if (size > bytes.size()) {
      ADD_FAILURE() << "field " << field.number << " is cut";
      return fields;
    }
    if (field.wire_type == 2) field.bytes = bytes.substr(0, size);
    if (field.wire_type == 1 || field.wire_type == 5)
      std::memcpy(&field.integer, bytes.data(), size);
    bytes.remove_prefix(size);
    fields.push_back(std::move(field));
  }
  return fields;
}

inline std::vector<ProtoField> fieldsOf(std::string_view bytes, uint32_t number) {
  std::vector<ProtoField> found;
  for (ProtoField& field : readProto(bytes))
    if (field.number == number) found.push_back(std::move(field));
  return found;
}

// Returns the only field of that number.
inline ProtoField fieldOf(std::string_view bytes, uint32_t number) {
  const std::vector<ProtoField> found = fieldsOf(bytes, number);
  EXPECT_EQ(found.size(), 1u) << "field " << number;
  return found.empty() ? ProtoField{} : found.front();
}

inline std::vector<double> packedOf(std::string_view bytes, uint32_t number) {
  const std::string packed = fieldOf(bytes, number).bytes;
  std::vector<double> values(packed.size() / sizeof(double));
  std::memcpy(values.data(), packed.data(), values.size() * sizeof(double));
  return values;
}

}  // namespace dtf::summary
