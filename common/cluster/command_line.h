#pragma once

// The command lines of psd, workerd and dtf-launch: groups of options as tables, parsed by
// Boost.Program_options, with misspelt options answered by the nearest one. TensorFlow's
// underscores (`--ps_hosts`) are the same options.

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/log.h"

namespace dtf::cluster {

struct OptionDef {
  std::string_view name;      // "ps-hosts"
  std::string_view argument;  // "HOSTS", for the help; empty: a switch
  std::string_view help;
  bool repeatable = false;
};

// What all three programs have: --set, --run-dir, --keys, --insecure, --log-level, --help,
// --help-config, --version.
std::span<const OptionDef> commonOptions();

// The lines of `--help` for one group, of at most 100 columns.
std::string optionHelp(std::span<const OptionDef> options);

// Immutable after construction.
class CommandLine {
 public:
  // `program` is the name in messages ("psd").
  // Errors: kUsage for an unknown option, a missing value, an option given twice, or more than
  // `positionals_max` words that are no options.
  CommandLine(std::string_view program, std::span<const OptionDef> options, size_t positionals_max,
              int argc, const char* const* argv);

  bool has(std::string_view name) const { return values_.contains(name); }
  std::optional<std::string> value(std::string_view name) const;
  std::vector<std::string> values(std::string_view name) const;  // of a repeatable option, in order
  const std::vector<std::string>& positionals() const { return positionals_; }

  // --set, in order, and --keys and --insecure, which are short for one.
  std::vector<std::string> overrides() const;
  // Of a number from 0 to 2^32 - 1.
  // Errors: kUsage.
  std::optional<uint32_t> index(std::string_view name) const;
  // `path`, given to the option `name`, with `~/` expanded.
  // Errors: kUsage when it is empty.
  std::string folder(std::string_view name, std::string path) const;
  // --log-level, default info.
  // Errors: kUsage.
  log::Level logLevel() const;
  // The answer to --help (`help`), --help-config or --version: to be written to stdout, exit code
  // 0. nullopt: none of them was given.
  std::optional<std::string> answer(const std::string& help) const;
  // Throws kUsage: `message` in one line, ending with how to get help.
  [[noreturn]] void fail(const std::string& message) const;

 private:
  std::string program_;
  std::map<std::string, std::vector<std::string>, std::less<>> values_;  // a switch has none
  std::vector<std::string> positionals_;
};

}  // namespace dtf::cluster
