#pragma once

// The part of HTTP/1.1 that status pages and monitoring need: GET without a body, one reply a
// connection. Only bytes and values; http_server.h has the sockets.

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>

namespace dtf::net {

// The limit for a request's line and fields together.
inline constexpr size_t kHttpHeadBytesMax = 8192;

struct HttpRequest {
  std::string path;  // "/metrics": without the query, begins with '/'
  std::string host;  // the field in lower case, without its port; empty in HTTP/1.0
  // "http://gpu1:9400": the origin of the requesting page in a browser; empty if unknown.
  std::string origin{};
};

// A rejected request.
struct HttpRefusal {
  int status = 400;
  std::string reason;    // a line for a person
  bool is_head = false;  // the answer has no body
};

struct HttpIncomplete {};
using HttpParsed = std::variant<HttpIncomplete, HttpRequest, HttpRefusal>;

// Parses the request at the start of `received`, the bytes of a connection so far. Ignores bytes
// after a complete request.
HttpParsed parseHttpRequest(std::string_view received);

struct HttpResponse {
  int status = 200;
  std::string body;
  std::string_view content_type = "text/plain; charset=utf-8";
  // A page of this origin may read the reply in a browser; empty: only pages of this server.
  std::string readable_from{};
  std::string_view policy{};  // a page's Content-Security-Policy; may be empty
};

// Returns "gpu1" for "http://gpu1:9400", in lower case; empty if `origin` is malformed.
std::string originHost(std::string_view origin);

// Returns the reply's bytes. They announce that the connection ends.
std::string httpText(const HttpResponse& response, bool with_body = true);

}  // namespace dtf::net
