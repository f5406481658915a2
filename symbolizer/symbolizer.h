// Symbolizer: addresses of a module -> functions, files, lines, inlined frames.
//
// Knows modules and addresses, not traces. A module is asked once with all its
// addresses: each compilation unit is then walked once for all of them
// (elfutils libdw; see docs/symbolizer.md for what is fast and why).
//
// Threads: one Symbolizer belongs to one thread.

#ifndef MEMTRACE_SYMBOLIZER_SYMBOLIZER_H_
#define MEMTRACE_SYMBOLIZER_SYMBOLIZER_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/file_stamp.h"

namespace memtrace::symbolizer {

struct Options {
  std::vector<std::string> debug_dirs = {"/usr/lib/debug"};  // --debug-dir, searched in order
  std::string sysroot;      // prefix for module paths and debug dirs of another machine
  bool debuginfod = false;  // ask DEBUGINFOD_URLS; never unless the user said so
  std::string cache_dir;    // of SymbolizerProcess: see symbol_cache.h; empty: no cache
};

struct Module {
  std::string path;      // as loaded in the traced process
  std::string build_id;  // raw bytes; a file with another one is refused. Empty: not checked
  // When it was loaded, in ns of the wall clock of the machine that it ran on; 0: not known.
  // Without a build-id a file that was written later is refused: nothing else tells of a rebuild.
  int64_t loaded_ns = 0;
};

// An address to look up, relative to the module (pc - load bias). A return
// address is looked up as address - 1, for it may be the first byte of the next
// function or line; the exact address of an interrupted instruction is not.
struct Address {
  uint64_t offset = 0;
  bool is_return_address = true;
  // Asks for what the call in front of this return address calls, in place of where it is: one
  // frame with its names alone, or none where the call names no function (call_targets.h).
  bool called = false;
};

// Asks for more than what is called.
inline bool AsksForPlaces(std::span<const Address> addresses) {
  return std::any_of(addresses.begin(), addresses.end(),
                     [](const Address& address) { return !address.called; });
}

struct Frame {
  std::string function;  // demangled; empty when not known. PLT stubs: "name@plt"
  std::string linkage_name;  // mangled; empty when there is none
  std::string file;      // empty when not known
  uint32_t line = 0;     // 0 when not known
  bool inlined = false;  // this function was inlined into the next frame
};

enum class ModuleState {
  kDebugInfo,        // DWARF found, here or in a separate file
  kSymbolsOnly,      // .symtab, .dynsym or .gnu_debugdata
  kBuildIdDiffers,   // the file was replaced since: nothing is looked up in it
  kWrittenSince,     // without a build-id: likely replaced, and treated as such
  kNotFound,
  kUnreadable,       // not an ELF file, or damaged
};

struct ModuleResult {
  ModuleState state = ModuleState::kNotFound;
  std::string message;     // why, for a person; empty when all is well
  // The part of `message` that says why there is no better answer although there was something to
  // find one in: a debug file of another build, damage, servers that have none or were not named.
  std::string missed;
  std::string debug_file;  // the separate debug file in use, if any
  // The names are of an earlier look, for the file is another or gone now.
  bool from_before = false;
  // For each address in the order asked: frames, innermost first; never empty of
  // frames for a mapped address of a readable module unless nothing is known.
  std::vector<std::vector<Frame>> frames;
  std::vector<base::FileStamp> files;  // that were looked at, or for
};

class Symbolizer {
 public:
  explicit Symbolizer(Options options);
  ~Symbolizer();
  Symbolizer(const Symbolizer&) = delete;
  Symbolizer& operator=(const Symbolizer&) = delete;

  ModuleResult Symbolize(const Module& module, std::span<const Address> addresses);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace memtrace::symbolizer

#endif  // MEMTRACE_SYMBOLIZER_SYMBOLIZER_H_
