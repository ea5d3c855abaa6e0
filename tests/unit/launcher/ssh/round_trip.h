#pragma once

// Orders and reports as they arrive at the other end.

#include <variant>

#include "launcher/ssh/messages.h"

namespace dtf::launcher {

template <class T>
T sent(const T& order) {
  return std::get<T>(parseOrder(orderJson(order)));
}

template <class T>
T told(const T& report) {
  return std::get<T>(parseReport(reportJson(report)));
}

}  // namespace dtf::launcher
