#pragma once

// Answers GET requests: status pages and metrics. Whoever connects is a stranger, so all that he
// may take is bounded.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <kj/async.h>

#include "common/base/clock.h"
#include "common/net/http_message.h"

namespace dtf::net {

class AsioEventPort;
class TlsKeys;

struct HttpOptions {
  // One more ends the one that has had its answer for longest; when there is none, the one that has
  // owed its request for longest; when all have asked, itself.
  size_t connections_max = 64;
  Duration request_deadline = std::chrono::seconds(5);   // from the connection to its request
  Duration answer_deadline = std::chrono::seconds(5);    // of the handler, then 503
  Duration reading_deadline = std::chrono::seconds(10);  // for the peer to take the answer
  // Of this name, in any letters, the requests may be, besides addresses and localhost; empty: of
  // any. A browser's page can have a name of its own lead to this address, and would else read what
  // is said here.
  std::string only_host{};
  // In any letters. A page that a browser has from one of these hosts, at any port, may read the
  // answers; a page from elsewhere has them refused by the browser.
  std::vector<std::string> readers{};
  // HTTPS; who shows no certificate of the job gets an answer, yes or no, at `open_paths` alone.
  // Null: plain HTTP.
  std::shared_ptr<TlsKeys> keys{};
  std::vector<std::string> open_paths{};
};

// One request a connection; what comes behind it is not answered. What is wrong gets the status
// that HTTP has for it: 400, 403, 405, 408, 413, 421, 431, 501, 505. What the handler fails with is
// a 500.
// Owns: the listening socket, connections, answers under way.
// Borrows: `port` (must outlive this).
// Threads: loop-thread only.
// Blocks: constructor, on the name resolution of `host` when it is not numeric or localhost.
// Errors: constructor: as bindAndListen().
class HttpServer {
 public:
  using Handler = std::function<kj::Promise<HttpResponse>(const std::string& path)>;

  // `host` and port as for Listener.
  HttpServer(AsioEventPort& port, const std::string& host, uint16_t tcp_port, Handler handler,
             HttpOptions options = {});
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  const std::string& address() const;  // "127.0.0.1:9400"
  size_t connectionCount() const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;  // shared with Asio's handlers, which may run after this is gone
};

}  // namespace dtf::net
