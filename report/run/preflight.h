// Preflight: can this program be traced by preloading a library into it?
//
// A program that ignores LD_PRELOAD runs on happily and leaves no trace, which
// reads like "no leaks". So the launcher looks before it runs anything: it
// follows scripts to their interpreter and reads the ELF file at the end. What
// it cannot see from outside is found later, by the trace that is missing.

#ifndef MEMTRACE_REPORT_RUN_PREFLIGHT_H_
#define MEMTRACE_REPORT_RUN_PREFLIGHT_H_

#include <optional>
#include <string>

#include "report/run/elf_facts.h"

namespace memtrace::report {

inline constexpr int kExitNotTraceable = 2;
inline constexpr int kExitNotExecutable = 126;  // as shells do
inline constexpr int kExitNotFound = 127;

// Why nothing was run: one line without "memtrace: ", and the exit status.
struct Refusal {
  int exit_status = kExitNotTraceable;
  std::string message;
};

// `name` as the user wrote it, `error` from FindProgram().
Refusal ExplainNotFound(const std::string& name, int error);

// `path` from FindProgram(); `library` are the facts of libmemtrace.so.
std::optional<Refusal> CheckTraceable(const std::string& path, const ElfFacts& library);

// An LD_PRELOAD that is already there may have a sanitizer's runtime in it.
std::optional<Refusal> CheckPreloaded(const char* ld_preload);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_RUN_PREFLIGHT_H_
