#pragma once

// The command lines of psd, workerd and dtf-launch: groups of options as tables, parsed by
// Boost.Program_options. The error for an unknown option suggests the nearest one. TensorFlow's
// underscores (`--ps_hosts`) name the same options.

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

// Returns the options of all three programs: --set, --run-dir, --keys, --insecure, --log-level,
// --help, --help-config, --version.
std::span<const OptionDef> commonOptions();

// Returns the lines of `--help` for one group, of at most 100 columns.
std::string optionHelp(std::span<const OptionDef> options);

// Immutable after construction.
class CommandLine {
 public:
  // `program`: the name in messages ("psd").
  // Errors: kUsage for an unknown option, a missing value, an option given twice, or more than
  // `positionals_max` positional arguments.
  CommandLine(std::string_view program, std::span<const OptionDef> options, size_t positionals_max,
              int argc, const char* const* argv);

  bool has(std::string_view name) const { return values_.contains(name); }
  std::optional<std::string> value(std::string_view name) const;
  std::vector<std::string> values(std::string_view name) const;  // of a repeatable option, in order
  const std::vector<std::string>& positionals() const { return positionals_; }

  // Returns the values of --set, in order, then --keys and --insecure as overrides.
  std::vector<std::string> overrides() const;
  // Returns the option's value, a number from 0 to 2^32 - 1.
  // Errors: kUsage.
  std::optional<uint32_t> index(std::string_view name) const;
  // Expands `~/` in `path`, the value of the option `name`.
  // Errors: kUsage when it is empty.
  std::string folder(std::string_view name, std::string path) const;
  // Returns --log-level, default info.
  // Errors: kUsage.
  log::Level logLevel() const;
  // Returns the output of --help (`help`), --help-config or --version, for stdout and exit code 0.
  // nullopt: none of them was given.
  std::optional<std::string> answer(const std::string& help) const;
  // Throws kUsage: `message` in one line that ends with the command for help.
  [[noreturn]] void fail(const std::string& message) const;

 private:
  std::string program_;
  std::map<std::string, std::vector<std::string>, std::less<>> values_;  // of a switch: empty
  std::vector<std::string> positionals_;
};

}  // namespace dtf::cluster
