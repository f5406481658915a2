// Where the project's sources were: places in them are named from there, as CI servers want them.

#ifndef MEMTRACE_REPORT_GATE_SOURCE_ROOT_H_
#define MEMTRACE_REPORT_GATE_SOURCE_ROOT_H_

#include <string>
#include <vector>

#include "report/gate/formats.h"
#include "report/names/frame.h"

namespace memtrace::report::gate {

// --source-root as whole paths: as it was given, by the name that a shell has of the working
// directory ($PWD), and without symbolic links. Debug information has what the compiler was told,
// which may be any of these. It need not be a directory of this machine.
std::vector<std::string> SourceRoots(const std::string& given);

// Nobody has to find out from a server that shows no leak in any file: why no source of a leak, or
// of a wrong free, is below --source-root. Empty: some are, or there is none to judge by.
std::string WhyNothingIsBelow(const GateReport& report, const std::string& given);

// `path` relative to the first root that it is below of; empty: it is below none.
std::string BelowRoots(const std::vector<std::string>& roots, const std::string& path);
// The same of a frame's file, also where its directory is below one by another name: through
// symbolic links of this machine. -ffile-prefix-map=DIR=. makes relative names, of DIR/src/a.c
// "./src/a.c", and "./build/src/a.c" where the compiler ran in DIR/build. Those of the project are
// looked for: a file below a root here that has the name, or its end, as much of it as possible.
std::string BelowRoots(const std::vector<std::string>& roots, const Frame& frame);
std::string BelowRoot(const std::string& root, const std::string& path);
// --source-root, else the directory the program ran in.
std::vector<std::string> RootsOf(const GateReport& report, const std::string& working_directory);

}  // namespace memtrace::report::gate

#endif  // MEMTRACE_REPORT_GATE_SOURCE_ROOT_H_
