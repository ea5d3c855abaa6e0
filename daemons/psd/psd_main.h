#pragma once

namespace dtf::psd {

// All of the program psd: from its arguments to its exit code.
int psdMain(int argc, char** argv);

}  // namespace dtf::psd
