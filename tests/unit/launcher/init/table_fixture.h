#pragma once

// Tables in text, as init sees them.

#include <optional>
#include <string>

#include "launcher/init/table_profile.h"
#include "tests/unit/launcher/init/init_fixture.h"

namespace dtf::launcher {

class TableTest : public InitTest {
 protected:
  TableProfile profile(const std::string& text,
                       const std::optional<std::string>& target = std::nullopt) {
    folder_.write("t.csv", text);
    return profileTable(path("t.csv"), target);
  }
  std::string refused(ErrorCode code, const std::string& text,
                      const std::optional<std::string>& target = std::nullopt) {
    return mistakeOf(code, [&] { profile(text, target); });
  }
};

inline std::string records(const std::string& record, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += record;
  return text;
}

}  // namespace dtf::launcher
