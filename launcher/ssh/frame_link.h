#pragma once

// Frames over two descriptors (a process's stdin and stdout, a socket) on the loop: either end of
// what dtf-launch and dtf-agent say to each other.

#include <functional>
#include <memory>
#include <string>

#include "common/base/clock.h"
#include "common/base/file.h"
#include "launcher/ssh/frames.h"

namespace boost::asio {
class io_context;
}

namespace dtf::launcher {

// Owns: the descriptors, which become non-blocking; what the peer has not taken yet.
// Borrows: `io` (must outlive this).
// Threads: loop-thread only.
// Blocks: send(), once kQueueBytesMax wait for the peer, for what `patience` says then: whoever has
// more to say than the link carries is slowed down by that.
// Errors: none are thrown: the link ends, and says why.
class FrameLink {
 public:
  static constexpr size_t kQueueBytesMax = size_t{16} << 20;

  struct Handlers {
    FrameReader::OnFrame on_frame;
    // Once, with what is wrong with the peer; empty: it has closed its end. Nothing is given after
    // it.
    std::function<void(const std::string& why)> on_end;
    // The peer has taken all but a little of what waited for it. Empty: nobody wants to know.
    std::function<void()> on_room{};
  };

  FrameLink(boost::asio::io_context& io, Fd in, Fd out, bool awaits_greeting,
            std::function<Duration()> patience, Handlers handlers);
  ~FrameLink();
  FrameLink(const FrameLink&) = delete;
  FrameLink& operator=(const FrameLink&) = delete;

  void send(std::string_view bytes);  // whole frames, or the greeting
  void askForRoom();                  // on_room is called, soon if nothing waits
  void awaitLine();                   // see FrameReader
  size_t queuedBytes() const;         // what the peer has not taken yet
  // Gives what has come until now, for a writer that is gone: the end of its stream may be held by
  // somebody else.
  void drain();
  // No frame comes or goes any more; on_end is not called.
  void close();
  // Closes the way out, after what waits for the peer: it sees the end.
  void closeOut();

 private:
  struct State;
  std::shared_ptr<State> state_;  // shared with the handlers in flight
};

}  // namespace dtf::launcher
