#pragma once

// The options of dtf-launch: one table, from which the command line is read, and from which the
// help of the program and of each verb comes.

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/cluster/command_line.h"
#include "launcher/verbs.h"

namespace dtf::launcher {

// A set of verbs, a bit for each. Value type.
class VerbSet {
 public:
  constexpr VerbSet() = default;
  template <class... Verbs>
  explicit constexpr VerbSet(Verbs... verbs)
      : bits_(((1u << static_cast<unsigned>(verbs)) | ...)) {}

  constexpr bool contains(Verb verb) const {
    return (bits_ >> static_cast<unsigned>(verb) & 1u) != 0;
  }
  constexpr VerbSet operator|(VerbSet other) const {
    other.bits_ |= bits_;
    return other;
  }

 private:
  unsigned bits_ = 0;
};

// An option's meaning for some verbs. Value type.
struct OptionUse {
  std::string_view words;  // "eval, predict": names the verbs in the help of the program
  VerbSet verbs;
  std::string_view text;
};

// A row of the table. Value type.
struct LaunchOption {
  std::string_view name;      // "detach"
  std::string_view argument;  // "FILE"; empty: a switch
  std::string_view letter;    // "-d"; empty: none
  // Without `words` the option means the same for all verbs, and those in `verbs` list it.
  std::array<OptionUse, 3> uses;
  bool repeatable = false;

  bool isFor(Verb verb) const;  // no other verb may have it
  bool isForAll() const { return uses[0].words.empty(); }
};

std::span<const LaunchOption> launchOptions();

// All options that the command line may have, with the ones that psd and workerd have too. Valid as
// long as the program runs.
std::span<const cluster::OptionDef> optionDefs();

// Returns the text of `help VERB` and `VERB --help`: the verb's description and its options.
std::string helpOf(const VerbInfo& info);

}  // namespace dtf::launcher
