// ElfFacts: what the launcher must know about a program before it runs it.
//
// Read with bounded preads from a file that may be anything: every offset and
// count is checked, nothing is mapped (a file that shrinks is no SIGBUS), and
// nothing is read of what the answer does not need.

#ifndef MEMTRACE_REPORT_RUN_ELF_FACTS_H_
#define MEMTRACE_REPORT_RUN_ELF_FACTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace memtrace::report {

struct ElfFacts {
  int elf_class = 0;      // ELFCLASS32 or ELFCLASS64
  int byte_order = 0;     // ELFDATA2LSB or ELFDATA2MSB
  uint16_t machine = 0;   // EM_X86_64, ...
  // The members from here on are read for 64-bit little-endian files only.
  uint16_t type = 0;      // ET_EXEC, ET_DYN, ...
  std::string interpreter;          // PT_INTERP; empty: none
  bool dynamic = false;             // has PT_DYNAMIC
  std::string soname;
  std::vector<std::string> needed;  // DT_NEEDED
  std::string sanitizer;            // "AddressSanitizer" and so on; empty: none

  bool readable_here() const;       // of the class and byte order whose details are read
  // The dynamic loader itself, run as `ld.so PROGRAM`: without interpreter, it preloads.
  bool is_dynamic_loader() const;
};

// Fails with FailedPrecondition when the file is not ELF, DataLoss when it is damaged.
absl::StatusOr<ElfFacts> ReadElfFacts(int fd);

// "x86-64", "ARM64", or "machine 1234".
std::string MachineName(uint16_t machine);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_RUN_ELF_FACTS_H_
