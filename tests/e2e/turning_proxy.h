#pragma once

// A network between workers and ps that turns bits now and then.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <thread>
#include <vector>

namespace dtf::testing {

// Passes everything on, both ways, and turns one bit of it, behind the preamble of a connection,
// each time that a random number of bytes has passed: between 64 and `gap_bytes_max`, small and
// large ones alike, in one direction and then the other. The next one is turned after the
// connection of the one before has ended.
// Owns: a thread, sockets.
// Threads: turned() may be called from any, the rest from the owner's.
class TurningProxy {
 public:
  enum Direction { kToPs, kToWorker };

  // `turns`: bits to be turned, then none.
  TurningProxy(std::vector<int> ps_ports, size_t turns, size_t gap_bytes_max, unsigned seed);
  ~TurningProxy();
  TurningProxy(const TurningProxy&) = delete;
  TurningProxy& operator=(const TurningProxy&) = delete;

  // In the order of `ps_ports`.
  const std::vector<int>& ports() const { return ports_; }
  size_t turned(Direction direction) const { return turned_.at(direction); }
  size_t turned() const { return turned(kToPs) + turned(kToWorker); }

 private:
  struct Pipe;

  void run();
  void accept(size_t ps);
  bool forward(const std::shared_ptr<Pipe>& pipe, Direction direction);  // false: an end has closed
  size_t nextGap();

  const std::vector<int> ps_ports_;
  const size_t turns_;
  const size_t gap_bytes_max_;
  std::mt19937_64 random_;
  std::vector<int> listeners_;
  std::vector<int> ports_;
  int wake_[2] = {-1, -1};  // the destructor writes, the thread ends
  size_t gap_;
  Direction next_direction_ = kToPs;
  std::array<std::atomic<size_t>, 2> turned_{};
  std::weak_ptr<Pipe> turned_pipe_;             // of the last turned bit, until it has ended
  std::map<int, std::shared_ptr<Pipe>> pipes_;  // by either socket
  std::thread thread_;
};

}  // namespace dtf::testing
