// DebuginfodFind(): ask the servers in DEBUGINFOD_URLS for a debug file.
//
// libdebuginfod is opened when first asked, never linked: it brings libcurl and
// its threads, which a tool that was not asked to use the network does not
// want. Call it only when the user allowed it (Options::debuginfod).

#ifndef MEMTRACE_SYMBOLIZER_DEBUGINFOD_CLIENT_H_
#define MEMTRACE_SYMBOLIZER_DEBUGINFOD_CLIENT_H_

#include <string>

namespace memtrace::symbolizer {

// Path of the file in debuginfod's cache; empty, with `note` saying why, if there is none for
// the module at `module_path`.
std::string DebuginfodFind(const std::string& build_id, const std::string& module_path,
                           std::string* note);

}  // namespace memtrace::symbolizer

#endif  // MEMTRACE_SYMBOLIZER_DEBUGINFOD_CLIENT_H_
