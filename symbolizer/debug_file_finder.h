// DebugFileFinder: which files hold the debug information of a module.
//
// For a module file, in this order, the first that is valid wins:
//   1. the file itself, when it has .debug_info
//   2. DIR/.build-id/xx/yyyy.debug         for each debug dir    same build-id
//   3. .gnu_debuglink NAME: beside the file, in .debug/ beside the file,
//      DIR/<directory of the file>/NAME    for each debug dir    CRC equal, and
//                                                                build-id if both have one
//   4. debuginfod, only when the options allow it
// A file without .debug_info but with .symtab is kept as second best while the
// search goes on. With a sysroot every place is tried inside it first, then as
// given: what is found is verified, so a wrong place cannot give a wrong name.
//
// The supplementary file that dwz makes (.gnu_debugaltlink) is found likewise.

#ifndef MEMTRACE_SYMBOLIZER_DEBUG_FILE_FINDER_H_
#define MEMTRACE_SYMBOLIZER_DEBUG_FILE_FINDER_H_

#include <memory>
#include <string>
#include <vector>

#include "symbolizer/elf_file.h"
#include "symbolizer/symbolizer.h"

namespace memtrace::symbolizer {

class DebugFileFinder {
 public:
  explicit DebugFileFinder(const Options& options) : options_(options) {}

  // `module_path` is the path on the traced machine. Null when there is none.
  // `note` is set when something was found but refused, or servers had none, and nothing good was
  // found elsewhere: why, for a person.
  std::unique_ptr<ElfFile> FindFor(const ElfFile& module, const std::string& module_path,
                                   std::string* note) const;
  // Finds the file by build-id alone: for a module whose file is gone or was replaced.
  // `note` as in FindFor().
  std::unique_ptr<ElfFile> FindByBuildId(const std::string& build_id, std::string* note) const;
  // The file that `debug` names in .gnu_debugaltlink as (name, build_id).
  std::unique_ptr<ElfFile> FindAlternate(const ElfFile& debug, const std::string& name,
                                         const std::string& build_id) const;
  // Where FindByBuildId() looks; empty where there is no build-id to speak of.
  std::vector<std::string> BuildIdPlaces(const std::string& build_id) const;

 private:
  std::vector<std::string> Places(const std::string& path) const;

  const Options& options_;
};

}  // namespace memtrace::symbolizer

#endif  // MEMTRACE_SYMBOLIZER_DEBUG_FILE_FINDER_H_
