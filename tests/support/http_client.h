#pragma once

// A client of our HTTP pages, and the text that Prometheus reads, for tests.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cmath>
#include <map>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <string>

#include "common/base/file.h"

namespace dtf::testing {

struct HttpAnswer {
  int status = 0;  // 0: no reply
  std::string body;
};

// Blocks: 20 s at most for each piece of the reply.
inline HttpAnswer httpGet(int port, const std::string& path) {
  const Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval patience{20, 0};
  ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return {};
  const std::string request = "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
  ::send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL);
  std::string text;
  char bytes[8192];
  for (ssize_t n = 0; (n = ::recv(fd.get(), bytes, sizeof bytes, 0)) > 0;)
    text.append(bytes, static_cast<size_t>(n));
  const size_t head = text.find("\r\n\r\n");
  if (!text.starts_with("HTTP/1.1 ") || head == std::string::npos) return {};
  return {std::stoi(text.substr(9, 3)), text.substr(head + 4)};
}

struct MetricsPage {
  struct Family {
    std::string help, type;
  };
  std::map<std::string, Family> families;
  std::map<std::string, double> values;  // by name and labels, as written
  std::string task;                      // the label `task` of all values

  // Returns the value of `name` with `label`, "outcome=\"applied\"", among its labels; NaN if none.
  double value(const std::string& name, const std::string& label = "") const {
    for (const auto& [sample, value] : values)
      if (sample.starts_with(name + "{") && sample.find(label) != std::string::npos) return value;
    return std::nan("");
  }
};

// Parses the text and checks its format: help and type before the first value, names and numbers
// that Prometheus accepts, no value twice, consistent buckets.
// Errors: std::runtime_error with the line.
inline MetricsPage parseMetrics(const std::string& text) {
  static const std::regex comment(R"(# (HELP|TYPE) ([a-z][a-z0-9_]*) (.+))");
  static const std::regex sample(
      R"re(([a-z][a-z0-9_]*)(\{[a-z_]+="[^"\\]*"(?:,[a-z_]+="[^"\\]*")*\}) (\S+))re");
  MetricsPage page;
  std::istringstream lines(text);
  std::string family, last_bucket;
  double below = 0;
  for (std::string line; std::getline(lines, line);) {
    const auto refuse = [&line](const std::string& why) {
      throw std::runtime_error(why + ": " + line);
    };
    std::smatch part;
    if (std::regex_match(line, part, comment)) {
      family = part[2];
      (part[1] == "HELP" ? page.families[family].help : page.families[family].type) = part[3];
      continue;
    }
    if (!std::regex_match(line, part, sample)) refuse("no line of the format");
    const std::string name = part[1], type = page.families[family].type;
    const bool is_part =
        type == "histogram" &&
        (name == family + "_bucket" || name == family + "_sum" || name == family + "_count");
    if ((name != family && !is_part) || (type == "histogram") != is_part)
      refuse("not of the family " + family + ", " + type);
    if (type == "counter" && !name.ends_with("_total")) refuse("a counter without _total");
    const std::string number = part[3];
    const double value = std::stod(number == "+Inf" ? "inf" : number);
    if (!page.values.emplace(name + std::string(part[2]), value).second) refuse("twice");
    if (name == family + "_bucket") {
      if (last_bucket == family && value < below) refuse("fewer than in the bucket before");
      last_bucket = family;
      below = value;
    }
    if (name == family + "_count" && value != below) refuse("not as many as in the last bucket");
    const std::string labels = part[2];
    const size_t at = labels.find("task=\"");
    if (at == std::string::npos) refuse("no task");
    page.task = labels.substr(at + 6, labels.find('"', at + 6) - at - 6);
  }
  for (const auto& [name, described] : page.families)
    if (described.help.empty() || described.type.empty())
      throw std::runtime_error(name + " lacks help or type");
  if (!text.ends_with('\n')) throw std::runtime_error("the last line has no end");
  return page;
}

}  // namespace dtf::testing
