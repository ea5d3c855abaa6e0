#pragma once

// Replies to GET requests: status pages and metrics. Any client may connect, so all its resources
// are bounded.

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
  // At the limit, a new connection replaces the one that had its reply first; if there is none, the
  // one that has owed its request for longest; if all have requested, it is closed itself.
  size_t connections_max = 64;
  Duration request_deadline = std::chrono::seconds(5);   // from the connection to its request
  Duration answer_deadline = std::chrono::seconds(5);    // for the handler, then 503
  Duration reading_deadline = std::chrono::seconds(10);  // for the peer to read the reply
  // The host name that requests may use, in any case, besides addresses and localhost; empty: any
  // name. A page in a browser can map a name of its own to this address, and could otherwise read
  // the replies.
  std::string only_host{};
  // Hosts, in any case. A page from one of them, at any port, may read the replies in a browser;
  // the browser denies them to other pages.
  std::vector<std::string> readers{};
  // Enables HTTPS; a client without a certificate of the job gets a reply, yes or no, only at
  // `open_paths`. Null: plain HTTP.
  std::shared_ptr<TlsKeys> keys{};
  std::vector<std::string> open_paths{};
};

// Handles one request per connection, and ignores bytes after it. Bad requests get the HTTP status
// for their mistake: 400, 403, 405, 408, 413, 421, 431, 501, 505. An error of the handler becomes
// 500.
// Owns: the listening socket, connections, replies in progress.
// Borrows: `port` (must outlive this).
// Threads: loop-thread only.
// Blocks: constructor, on the name resolution of `host` if it is neither numeric nor localhost.
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
