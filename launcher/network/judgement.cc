#include "launcher/network/judgement.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "common/base/check.h"
#include "common/cluster/address.h"
#include "launcher/network/network_report.h"

namespace dtf::launcher {

namespace {

using Rows = std::vector<NetworkRow>;

double rateOf(const NetworkRow& row) {
  return row.measured.bytes_per_second;
}

std::string pairText(const NetworkRow& row) {
  return row.from + " to " + row.to;
}

// A host all of whose connections in one direction are slow is one warning, not one for each peer:
// `end` is the end of a row that is this host.
void addSlowHosts(std::vector<const NetworkRow*>& slow, const Rows& rows,
                  std::string NetworkRow::*end, const char* direction, double best,
                  std::vector<std::string>& warnings) {
  std::map<std::string, std::pair<size_t, size_t>> counts;  // slow, all
  for (const NetworkRow& row : rows)
    if (row.is_files && row.reached()) ++counts[row.*end].second;
  for (const NetworkRow* row : slow) ++counts[row->*end].first;
  for (const auto& [host, count] : counts) {
    DTF_CHECK_MSG(count.first <= count.second, host);
    if (count.first < 2 || count.first < count.second) continue;
    double most = 0;
    std::erase_if(slow, [&, &name = host](const NetworkRow* row) {
      if (row->*end != name) return false;
      most = std::max(most, rateOf(*row));
      return true;
    });
    warnings.push_back(
        fmt::format("all connections {} {} are slow: {} MB/s at most, and the best pair has {}",
                    direction, host, rateText(most), rateText(best)));
  }
}

void addSlow(const Rows& rows, std::vector<std::string>& warnings) {
  const NetworkRow* best = nullptr;
  for (const NetworkRow& row : rows)
    if (row.is_files && row.reached() && (best == nullptr || rateOf(row) > rateOf(*best)))
      best = &row;
  if (best == nullptr) return;
  std::vector<const NetworkRow*> slow;
  for (const NetworkRow& row : rows)
    if (row.is_files && row.reached() && rateOf(row) < kSlowBelow * rateOf(*best))
      slow.push_back(&row);
  addSlowHosts(slow, rows, &NetworkRow::from, "out of", rateOf(*best), warnings);
  addSlowHosts(slow, rows, &NetworkRow::to, "into", rateOf(*best), warnings);
  for (const NetworkRow* row : slow)
    warnings.push_back(fmt::format("{} has {} MB/s, less than half of the {} from {}",
                                   pairText(*row), rateText(rateOf(*row)), rateText(rateOf(*best)),
                                   pairText(*best)));
}

// By how much `other`, an address of `host`, is faster than the one in the file; nullopt: it isn't,
// from somewhere, or nobody reaches it.
std::optional<double> fasterBy(const Rows& rows, const std::string& host,
                               const std::string& other) {
  std::map<std::string, double> of_file, of_other;  // by who measured
  for (const NetworkRow& row : rows) {
    if (row.to != host || row.from == host || !row.reached()) continue;
    if (row.is_files) of_file[row.from] = rateOf(row);
    if (row.address == other && !row.is_files) of_other[row.from] = rateOf(row);
  }
  std::optional<double> least;
  for (const auto& [from, rate] : of_other) {
    const auto file = of_file.find(from);
    if (file == of_file.end() || file->second <= 0) continue;
    least = std::min(least.value_or(rate / file->second), rate / file->second);
  }
  if (!least || *least < kBetterBy) return std::nullopt;
  return least;
}

void addWrongCards(const Rows& rows, std::vector<std::string>& warnings) {
  struct Better {
    const NetworkRow* row;
    double by;
  };
  std::map<std::string, Better> better;  // by host
  std::map<std::string, const NetworkRow*> of_file;
  for (const NetworkRow& row : rows) {
    if (row.is_files) of_file[row.to] = &row;
    if (row.is_files) continue;
    const std::optional<double> by = fasterBy(rows, row.to, row.address);
    if (!by) continue;
    const auto [found, is_new] = better.try_emplace(row.to, Better{&row, *by});
    if (!is_new && *by > found->second.by) found->second = {&row, *by};
  }
  for (const auto& [host, other] : better) {
    const NetworkRow& own = *of_file.at(host);
    warnings.push_back(
        fmt::format("wrong network card? {} is {} on its {}, and its {} with {} is {:.1f} times as "
                    "fast: name that address in the cluster file",
                    host, own.address, own.interface.empty() ? "interface" : own.interface,
                    other.row->interface.empty() ? "interface" : other.row->interface,
                    other.row->address, other.by));
  }
}

void addLoopback(const Rows& rows, std::vector<std::string>& warnings) {
  std::set<std::string> told;
  for (const NetworkRow& row : rows)
    if (row.is_files && !row.reached() && row.from != row.to && cluster::isLoopback(row.address) &&
        told.insert(row.to).second)
      warnings.push_back(
          fmt::format("{} resolves its own name to {}, which no other host reaches: see its "
                      "/etc/hosts, or name its address in the cluster file",
                      row.to, row.address));
}

}  // namespace

std::vector<std::string> networkWarnings(const Rows& rows) {
  std::vector<std::string> warnings;
  addLoopback(rows, warnings);
  addSlow(rows, warnings);
  addWrongCards(rows, warnings);
  return warnings;
}

std::vector<std::string> unreachedPairs(const Rows& rows) {
  std::vector<std::string> pairs;
  for (const NetworkRow& row : rows) {
    if (!row.is_files || row.reached()) continue;
    pairs.push_back(pairText(row) + ": " + row.measured.problem);
    for (const NetworkRow& other : rows)
      if (!other.is_files && other.reached() && other.from == row.from && other.to == row.to)
        pairs.back() += fmt::format("; it reaches {} on its {}", other.address, other.interface);
  }
  return pairs;
}

}  // namespace dtf::launcher
