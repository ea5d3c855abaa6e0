#include "common/yaml/map_reader.h"

#include <gtest/gtest.h>

#include <array>

#include "common/yaml/keys.h"
#include "tests/support/temporary_files.h"

namespace dtf::yaml {
namespace {

using testing::badConfigOf;

constexpr Key kMapKeys[] = {
    required(text("name", "what it is called")),
    whole("units", 1, 10, "how many"),
    number("rate", {0, 1, true, false}, "how often"),
    boolean("fast", "in a hurry"),
    choice("mode", "async|sync", "bounded", "how", "async"),
    wholes("stride", 1, 8, "how far"),
    list("layers", "one after another"),
    later("tomorrow"),
};
constinit const Table kMapTable{"a", kMapKeys};

constexpr Key kKinds[] = {
    map("dense", "a layer"),
    map("flatten", "another"),
    later("sparse"),
};
constinit const Table kKindTable{"a.layers.N", kKinds};

// The one map of a file, read with kMapTable.
class Reading {
 public:
  explicit Reading(const std::string& text)
      : root_(*parseYaml(text, report_.addFile("f.yaml", text), report_)),
        reader_(root_, kMapTable, "a", report_) {}

  const MapReader& reader() const { return reader_; }
  Report& report() { return report_; }
  const YamlNode& root() const { return root_; }
  // Returns the first line of the report; "no error" if it is empty.
  std::string mistake() const {
    const std::string message = badConfigOf([this] { report_.throwIfAny(); });
    return message.substr(0, message.find('\n'));
  }

 private:
  Report report_;
  const YamlNode root_;
  const MapReader reader_;
};

// Returns the error of reading `key` as a T.
template <class Read>
std::string mistakeOf(const std::string& text, Read read) {
  const Reading reading("name: x\n" + text);
  EXPECT_FALSE(read(reading.reader())) << text;
  return reading.mistake();
}

TEST(MapReader, ReadsEachTypeAndLeavesWhatIsAbsent) {
  const Reading reading("name: x\nunits: 7\nrate: 1\nfast: True\nmode: sync\n");
  const MapReader& reader = reading.reader();
  std::string name, word;
  int64_t units = 0;
  double rate = 0;
  bool fast = false;
  size_t mode = 0;
  EXPECT_TRUE(reader.text("name", name) && reader.whole("units", units) &&
              reader.number("rate", rate) && reader.boolean("fast", fast) &&
              reader.choice("mode", mode) && reader.word("mode", word));
  EXPECT_EQ(name, "x");
  EXPECT_EQ(units, 7);
  EXPECT_EQ(rate, 1);
  EXPECT_TRUE(fast);
  EXPECT_EQ(mode, 1u) << "the second of its choices";
  EXPECT_EQ(word, "sync");
  std::array<int64_t, 2> stride = {5, 6};
  EXPECT_FALSE(reader.wholes("stride", stride));
  EXPECT_EQ(stride, (std::array<int64_t, 2>{5, 6}));
  EXPECT_TRUE(reader.list("layers").empty());
  EXPECT_EQ(reading.mistake(), "no error");
}

TEST(MapReader, KeysThatAreUnknownMissingOrOfAnotherVersionAreReportedAtOnce) {
  EXPECT_EQ(Reading("name: x\nunit: 3\n").mistake(),
            "f.yaml:2:1: error: unknown key 'unit' in 'a' - did you mean 'units'?");
  EXPECT_NE(Reading("units: 3\n").mistake().find("missing key 'name' in 'a': what it is called"),
            std::string::npos);
  EXPECT_EQ(Reading("name: x\ntomorrow: 1\n").mistake(),
            "f.yaml:2:1: error: 'tomorrow' is not available in this version");
  EXPECT_EQ(Reading("[1, 2]\n").mistake().find("f.yaml:1:1: error: expected a map for 'a'"), 0u);
}

TEST(MapReader, ANumberIsWithinItsBoundsAndNothingElse) {
  const auto units = [](const std::string& text) {
    return mistakeOf("units: " + text + "\n", [](const MapReader& reader) {
      int64_t value = 0;
      return reader.whole("units", value);
    });
  };
  EXPECT_EQ(units("11"), "f.yaml:2:8: error: 'units' must be from 1 to 10, got '11'");
  EXPECT_EQ(units("99999999999999999999"),
            "f.yaml:2:8: error: 'units' must be from 1 to 10, got '99999999999999999999'");
  EXPECT_EQ(units("3.0"), "f.yaml:2:8: error: expected a whole number for 'units', got '3.0'");
  EXPECT_EQ(units("'3'"),
            "f.yaml:2:8: error: expected a whole number for 'units', got the text '3'");
  EXPECT_NE(units("010").find("which YAML may read as octal: write 10"), std::string::npos);
  EXPECT_EQ(units(""), "f.yaml:2:1: error: 'units' needs a value: how many");
  for (const char* const text : {"0", "1.5", ".inf", ".nan", "-1"})
    EXPECT_NE(mistakeOf("rate: " + std::string(text) + "\n",
                        [](const MapReader& reader) {
                          double value = 0;
                          return reader.number("rate", value);
                        })
                  .find("'rate' must be more than 0 and at most 1"),
              std::string::npos)
        << text;
}

TEST(MapReader, AWordIsOneOfItsChoices) {
  const auto mode = [](const std::string& text) {
    return mistakeOf("mode: " + text + "\n", [](const MapReader& reader) {
      size_t value = 0;
      return reader.choice("mode", value);
    });
  };
  EXPECT_EQ(mode("snyc"), "f.yaml:2:7: error: unknown mode 'snyc' - did you mean 'sync'?");
  EXPECT_EQ(mode("bounded"),
            "f.yaml:2:7: error: 'bounded' is not available in this version: async");
  EXPECT_EQ(mode("[sync]"), "f.yaml:2:1: error: expected async, sync for 'mode', got a list");
}

TEST(MapReader, OneNumberStandsForAllOrThereIsOneForEach) {
  const auto strides = [](const std::string& text) {
    const Reading reading("name: x\nstride: " + text + "\n");
    std::array<int64_t, 2> values = {};
    EXPECT_TRUE(reading.reader().wholes("stride", values)) << reading.mistake();
    return values;
  };
  EXPECT_EQ(strides("3"), (std::array<int64_t, 2>{3, 3}));
  EXPECT_EQ(strides("[3, 4]"), (std::array<int64_t, 2>{3, 4}));
  const auto wrong = [](const std::string& text) {
    return mistakeOf("stride: " + text + "\n", [](const MapReader& reader) {
      std::array<int64_t, 2> values = {};
      return reader.wholes("stride", values);
    });
  };
  EXPECT_EQ(wrong("[1, 2, 3]"),
            "f.yaml:2:1: error: 'stride' must be one number or 2 of them, got 3");
  EXPECT_NE(wrong("[1, 9]").find("'stride' must be from 1 to 8, got '9'"), std::string::npos);
}

TEST(MapReader, ATextIsNeitherEmptyNorOfControlCharacters) {
  const auto name = [](const std::string& text) {
    const Reading reading("name: " + text + "\n");
    std::string value = "before";
    EXPECT_FALSE(reading.reader().text("name", value));
    EXPECT_EQ(value, "before");
    return reading.mistake();
  };
  EXPECT_NE(name("\"\"").find("'name' is empty"), std::string::npos);
  EXPECT_NE(name("\"a\\tb\"").find("'name' holds a control character"), std::string::npos);
  EXPECT_NE(name(std::string(5000, 'x')).find("longer than 4096 bytes"), std::string::npos);
  EXPECT_NE(name("{a: 1}").find("expected a text for 'name', got a map"), std::string::npos);
}

TEST(ReadAlternative, IsANameAloneOrWithItsSettings) {
  const auto read = [](const std::string& text, std::string& mistake) {
    Report report;
    const std::optional<YamlNode> node = parseYaml(text, report.addFile("f.yaml", text), report);
    const std::optional<Alternative> chosen = readAlternative(*node, kKindTable, "layer", report);
    mistake = badConfigOf([&] { report.throwIfAny(); });
    mistake = mistake.substr(0, mistake.find('\n'));
    return chosen;
  };
  std::string mistake;
  const auto alone = read("flatten\n", mistake), with = read("dense: {units: 3}\n", mistake);
  ASSERT_TRUE(alone && with);
  EXPECT_EQ(alone->key->name, "flatten");
  EXPECT_EQ(with->settings.find("units")->text, "3");
  for (const auto& [text, expected] :
       {std::pair{"dens\n", "unknown layer 'dens' - did you mean 'dense'?"},
        {"sparse\n", "'sparse' is not available in this version"},
        {"[dense]\n", "expected one layer, got a list"},
        {"dense:\nunits: 3\n", "indent the settings of 'dense' further"}}) {
    EXPECT_FALSE(read(text, mistake)) << text;
    EXPECT_NE(mistake.find(expected), std::string::npos) << mistake;
  }
}

}  // namespace
}  // namespace dtf::yaml
