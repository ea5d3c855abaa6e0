#pragma once

// The little of HTTP/1.1 that pages for people and monitoring need: GET without a body, one answer
// a connection. Bytes and values only; the sockets are http_server.h's.

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>

namespace dtf::net {

// Of a request's line and fields together.
inline constexpr size_t kHttpHeadBytesMax = 8192;

struct HttpRequest {
  std::string path;  // "/metrics": without the query, begins with '/'
  std::string host;  // the field in small letters, without its port; empty in HTTP/1.0
  // "http://gpu1:9400": of the page that asks, in a browser; empty: nobody says so.
  std::string origin{};
};

// Why a request isn't answered as it asks.
struct HttpRefusal {
  int status = 400;
  std::string reason;    // a line for a person
  bool is_head = false;  // the answer has no body
};

struct HttpIncomplete {};
using HttpParsed = std::variant<HttpIncomplete, HttpRequest, HttpRefusal>;

// What `received`, all that has come on a connection, begins with. What follows a whole request is
// not looked at.
HttpParsed parseHttpRequest(std::string_view received);

struct HttpResponse {
  int status = 200;
  std::string body;
  std::string_view content_type = "text/plain; charset=utf-8";
  // A page from there may read the answer in a browser; empty: only one from here.
  std::string readable_from{};
  std::string_view policy{};  // Content-Security-Policy of a page; empty: none
};

// "gpu1" of "http://gpu1:9400", in small letters; empty for what is no such origin.
std::string originHost(std::string_view origin);

// On the wire. It says that the connection ends with it.
std::string httpText(const HttpResponse& response, bool with_body = true);

}  // namespace dtf::net
