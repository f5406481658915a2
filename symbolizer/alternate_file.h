// AlternateFile: the supplementary file that a DWARF file names in .gnu_debugaltlink (`dwz -m`), to
// which it then refers for names and types.

#ifndef MEMTRACE_SYMBOLIZER_ALTERNATE_FILE_H_
#define MEMTRACE_SYMBOLIZER_ALTERNATE_FILE_H_

#include <elfutils/libdw.h>

#include <memory>
#include <string>

#include "symbolizer/debug_file_finder.h"
#include "symbolizer/elf_file.h"

namespace memtrace::symbolizer {

class AlternateFile {
 public:
  // Gives `dwarf`, which was read from `file`, what it names; nothing, if it names
  // none. Outlives `dwarf`.
  AlternateFile(Dwarf* dwarf, const ElfFile& file, const DebugFileFinder& finder);
  ~AlternateFile();
  AlternateFile(const AlternateFile&) = delete;
  AlternateFile& operator=(const AlternateFile&) = delete;

  // The name of one that is missing; empty: none is.
  const std::string& missing() const { return missing_; }

 private:
  std::unique_ptr<ElfFile> file_;
  Dwarf* dwarf_ = nullptr;
  std::string missing_;
};

}  // namespace memtrace::symbolizer

#endif  // MEMTRACE_SYMBOLIZER_ALTERNATE_FILE_H_
