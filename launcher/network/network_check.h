#pragma once

// Has hosts measure what is between them, in rounds.

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "launcher/network/measurement.h"
#include "launcher/network/rounds.h"

namespace dtf::launcher {

// A host that takes part.
struct ProbeSite {
  std::string host;                     // as the cluster file has it, and others look for it
  std::string identity;                 // that it answers with
  std::string task;                     // that its certificate names; empty: there are no keys
  std::vector<ProbeAddress> addresses;  // the first is the file's
  // Orders a measurement from there; what comes of it is told with answered() or lost().
  std::function<void(const Measure& order)> measure;
};

// kAll: every pair of hosts in both directions, and every address of each host from every other;
// one host alone, from itself. kLinks: the capacity of each host's link, briefly, at the address of
// the file: see linkRoundsOf().
enum class NetworkScope : uint8_t { kAll, kLinks };

// Borrows: `clock` (must outlive this).
// Threads: thread-compatible.
// Blocks: run(), each measurement for kAnswerWithin (kBriefAnswerWithin) at most.
class NetworkCheck {
 public:
  static constexpr Duration kAnswerWithin = std::chrono::seconds(10);
  static constexpr Duration kBriefAnswerWithin = std::chrono::seconds(3);

  NetworkCheck(std::vector<ProbeSite> sites, const Clock& clock,
               NetworkScope scope = NetworkScope::kAll);

  size_t measurements() const;  // in all

  // `turn` waits a little for answers. `on_round` is told how many measurements are done, before
  // each round.
  std::vector<NetworkRow> run(const std::function<void()>& turn,
                              const std::function<void(size_t done)>& on_round);

  // Of an order; one that nobody waits for any more is dropped.
  void answered(const Measured& measured);
  // Nothing more comes from that host, and nobody reaches it.
  void lost(const std::string& host, const std::string& why);

 private:
  struct UnderWay {
    HostPair pair;
    size_t address = 0;  // of the one that is measured now
    uint64_t number = 0;
    TimePoint since{};
  };
  void startNext(UnderWay& under_way);
  void finish(UnderWay& under_way, Measured measured);
  void giveUpLate();
  bool isDone(const UnderWay& under_way) const;
  std::vector<std::vector<HostPair>> rounds() const;
  size_t addressesOf(size_t site) const;  // that are measured
  Duration patience() const;

  const NetworkScope scope_;
  const std::vector<ProbeSite> sites_;
  const Clock& clock_;
  uint64_t numbers_ = 0;
  std::vector<UnderWay> round_;
  std::map<std::string, std::string> lost_;  // host -> why
  std::vector<NetworkRow> rows_;
};

}  // namespace dtf::launcher
