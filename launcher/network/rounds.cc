#include "launcher/network/rounds.h"

#include "common/base/check.h"

namespace dtf::launcher {

// As a tournament is drawn up: one stays, the others move on by one seat, those who face each other
// play. With an odd number whoever faces the empty seat rests.
std::vector<std::vector<HostPair>> roundsOf(size_t hosts) {
  DTF_CHECK(hosts > 0);
  if (hosts == 1) return {{{0, 0}}};
  const size_t seats = hosts + hosts % 2;
  std::vector<std::vector<HostPair>> rounds;
  for (size_t turn = 0; turn + 1 < seats; ++turn) {
    std::vector<HostPair> there, back;
    const auto at = [&](size_t seat) {
      return seat == 0 ? 0 : 1 + (seat - 1 + turn) % (seats - 1);
    };
    for (size_t seat = 0; seat < seats / 2; ++seat) {
      const HostPair pair{at(seat), at(seats - 1 - seat)};
      if (pair.from >= hosts || pair.to >= hosts) continue;
      there.push_back(pair);
      back.push_back({pair.to, pair.from});
    }
    rounds.push_back(std::move(there));
    rounds.push_back(std::move(back));
  }
  return rounds;
}

std::vector<std::vector<HostPair>> linkRoundsOf(size_t hosts) {
  DTF_CHECK(hosts > 0);
  if (hosts == 1) return roundsOf(hosts);
  std::vector<std::vector<HostPair>> rounds;
  for (size_t distance = 1; distance <= 2 && distance < hosts; ++distance) {
    std::vector<HostPair>& round = rounds.emplace_back();
    for (size_t from = 0; from < hosts; ++from) round.push_back({from, (from + distance) % hosts});
  }
  return rounds;
}

}  // namespace dtf::launcher
