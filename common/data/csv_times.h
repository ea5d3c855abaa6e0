#pragma once

// Times in a table, for a split by time.

#include <cstdint>
#include <optional>
#include <string_view>

namespace dtf::data {

// Returns a number that is larger for a later time; nullopt if `field` is none. A time is a number,
// whose decimals follow `decimal`, or a date of ISO 8601: 2024-05-31, 2024-05-31T12:30,
// "2024-05-31 12:30:00.5", perhaps with a Z behind it.
std::optional<uint64_t> timeKey(std::string_view field, char decimal = '.');

}  // namespace dtf::data
