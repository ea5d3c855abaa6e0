#pragma once

// Hints for an unknown key that is valid elsewhere, or that other frameworks have.

#include <string>
#include <string_view>

#include "common/yaml/key_table.h"
#include "common/yaml/yaml_tree.h"

namespace dtf::yaml {

// Where an unknown key stands. Value type.
// Borrows: all.
struct MisplacedKey {
  Tables tables;
  const Table& table;             // of its map
  const YamlNode* map = nullptr;  // the hint follows its choices (of an optimizer); may be null
  bool is_flag = false;           // it comes from --set
};

// Returns " - it belongs in train.data" or " - write --set train.data.batch_size=VALUE" if another
// table has the key `word`; empty otherwise.
std::string ownerHint(const MisplacedKey& at, std::string_view word);

// Returns " - did you mean 'learning_rate'?" for 'lr', or the place of the learning rate if it is
// elsewhere; empty if `word` is no such alias.
std::string aliasHint(const MisplacedKey& at, std::string_view word);

}  // namespace dtf::yaml
