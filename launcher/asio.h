#pragma once

// Boost.Asio as this compiler needs it: Boost 1.74 uses std::exchange without <utility>.

#include <utility>

#include <boost/asio.hpp>
