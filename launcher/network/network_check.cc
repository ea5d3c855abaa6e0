#include "launcher/network/network_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "common/base/check.h"

namespace dtf::launcher {

NetworkCheck::NetworkCheck(std::vector<ProbeSite> sites, const Clock& clock, NetworkScope scope)
    : scope_(scope), sites_(std::move(sites)), clock_(clock) {
  DTF_CHECK(!sites_.empty());
  for (const ProbeSite& site : sites_) DTF_CHECK_MSG(!site.addresses.empty(), site.host);
}

std::vector<std::vector<HostPair>> NetworkCheck::rounds() const {
  return scope_ == NetworkScope::kLinks ? linkRoundsOf(sites_.size()) : roundsOf(sites_.size());
}

size_t NetworkCheck::addressesOf(size_t site) const {
  return scope_ == NetworkScope::kLinks ? 1 : sites_[site].addresses.size();
}

Duration NetworkCheck::patience() const {
  return scope_ == NetworkScope::kLinks ? kBriefAnswerWithin : kAnswerWithin;
}

size_t NetworkCheck::measurements() const {
  size_t count = 0;
  for (const auto& round : rounds())
    for (const HostPair& pair : round) count += addressesOf(pair.to);
  return count;
}

bool NetworkCheck::isDone(const UnderWay& under_way) const {
  return under_way.address >= addressesOf(under_way.pair.to);
}

std::vector<NetworkRow> NetworkCheck::run(const std::function<void()>& turn,
                                          const std::function<void(size_t done)>& on_round) {
  rows_.clear();
  for (const std::vector<HostPair>& pairs : rounds()) {
    on_round(rows_.size());
    round_.clear();
    for (const HostPair& pair : pairs) round_.push_back({pair});
    for (UnderWay& each : round_) startNext(each);
    const auto done = [this](const UnderWay& each) { return isDone(each); };
    while (!std::all_of(round_.begin(), round_.end(), done)) {
      turn();
      giveUpLate();
    }
  }
  round_.clear();
  DTF_CHECK(rows_.size() == measurements());
  // As a person looks for a pair: by host in the file's order.
  std::map<std::string, size_t> place;
  for (size_t i = 0; i < sites_.size(); ++i) place[sites_[i].host] = i;
  std::stable_sort(rows_.begin(), rows_.end(), [&](const NetworkRow& a, const NetworkRow& b) {
    return std::tuple(place[a.from], place[a.to]) < std::tuple(place[b.from], place[b.to]);
  });
  return rows_;
}

void NetworkCheck::startNext(UnderWay& under_way) {
  const ProbeSite& from = sites_[under_way.pair.from];
  const ProbeSite& to = sites_[under_way.pair.to];
  if (isDone(under_way)) return;
  under_way.number = ++numbers_;
  under_way.since = clock_.now();
  for (const auto& [host, why] : lost_)
    if (host == from.host || host == to.host)
      return finish(under_way, {under_way.number, 0, 0, why});
  const ProbeAddress& address = to.addresses[under_way.address];
  // Others look for the host by the name that the file has.
  const std::string& name = under_way.address == 0 ? to.host : address.address;
  from.measure({under_way.number,
                {name, address.port},
                to.identity,
                to.task,
                scope_ == NetworkScope::kLinks});
}

void NetworkCheck::finish(UnderWay& under_way, Measured measured) {
  DTF_CHECK(!isDone(under_way));
  DTF_CHECK(measured.number == under_way.number);
  const ProbeSite& to = sites_[under_way.pair.to];
  const ProbeAddress& address = to.addresses[under_way.address];
  rows_.push_back({sites_[under_way.pair.from].host, to.host, address.address, address.interface,
                   under_way.address == 0, std::move(measured)});
  ++under_way.address;
  startNext(under_way);
}

void NetworkCheck::answered(const Measured& measured) {
  for (UnderWay& each : round_)
    if (!isDone(each) && each.number == measured.number) return finish(each, measured);
}

void NetworkCheck::lost(const std::string& host, const std::string& why) {
  if (!lost_.emplace(host, why).second) return;
  for (UnderWay& each : round_) {
    const bool is_its = sites_[each.pair.from].host == host || sites_[each.pair.to].host == host;
    if (is_its && !isDone(each)) finish(each, {each.number, 0, 0, why});
  }
}

void NetworkCheck::giveUpLate() {
  for (UnderWay& each : round_)
    if (!isDone(each) && clock_.now() > each.since + patience())
      finish(each, {each.number, 0, 0,
                    fmt::format("waited {:g} s for {} to measure it", toSeconds(patience()),
                                sites_[each.pair.from].host)});
}

}  // namespace dtf::launcher
