// The file of a module: found, and proven to be the one that was traced.

#ifndef MEMTRACE_SYMBOLIZER_MODULE_FILE_H_
#define MEMTRACE_SYMBOLIZER_MODULE_FILE_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "symbolizer/elf_file.h"
#include "symbolizer/symbolizer.h"

namespace memtrace::symbolizer {

// "[vdso]", "[heap]", "linux-vdso.so.1", "linux-gate.so.1"
bool IsNoFile(const std::string& path);

// Where the module's own file may be, the likeliest first.
std::vector<std::string> PlacesOf(const std::string& sysroot, const Module& module);

// The module's own file. Null, with state and message of `result` set, when there is none to use.
std::unique_ptr<ElfFile> OpenModuleFile(const Options& options, const Module& module,
                                        ModuleResult* result);

// The answer for `addresses` addresses where neither the module's file nor a debug file of its
// build-id is on this machine. Nothing is opened to find that out; nullopt: there is something to
// open, or to ask a server for.
std::optional<ModuleResult> AnswerWithoutFiles(const Options& options, const Module& module,
                                               size_t addresses);

}  // namespace memtrace::symbolizer

#endif  // MEMTRACE_SYMBOLIZER_MODULE_FILE_H_
