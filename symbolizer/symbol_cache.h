// SymbolCache: what the symbolizer found in modules, on disk, by build-id.
//
// An entry is one file: the frames of the addresses that were ever asked of one build, and a
// stamp of every file that was looked at or for: the module, its debug file, and the places where
// one could have been and was not. When any of them is another now, as after installing a
// package of debug symbols, the entry says nothing; but when the module itself is gone, or another
// build is in its place, the names that were found of it are still its names. Nor when it was
// written by another build of this program, with other options, or does not match its checksum.
//
// Nothing here is an error: a directory that cannot be made, read or written is no cache. Files
// are written apart and renamed, so any number of processes may use one directory; of two that
// write the same entry the last one stays. Files of other users are not read. When all files of
// the directory are more than the limit, those that were used least recently go
// (base/private_file.h).
//
// One thread.

#ifndef MEMTRACE_SYMBOLIZER_SYMBOL_CACHE_H_
#define MEMTRACE_SYMBOLIZER_SYMBOL_CACHE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "symbolizer/symbolizer.h"

namespace memtrace::symbolizer {

// Where the cache is: `chosen` (of an option; "off": nowhere), else MEMTRACE_SYMBOL_CACHE (the
// same), else $XDG_CACHE_HOME/memtrace, else ~/.cache/memtrace. Empty: there is none.
std::string SymbolCacheDirectory(const std::string& chosen = "");

class SymbolCache {
 public:
  static constexpr uint64_t kMostBytes = uint64_t{256} << 20;  // of its files in the directory

  // `directory` empty: does nothing.
  explicit SymbolCache(std::string directory, uint64_t most_bytes = kMostBytes)
      : directory_(std::move(directory)), most_bytes_(most_bytes) {}

  using Ask = std::function<ModuleResult(const Module&, std::span<const Address>)>;
  // Gives what Symbolizer::Symbolize() gives with these options; calls `ask` only
  // for what is not known.
  ModuleResult Symbolize(const Options& options, const Module& module,
                         std::span<const Address> addresses, const Ask& ask);

  uint64_t hits() const { return hits_; }      // addresses that were known
  uint64_t misses() const { return misses_; }  // and that had to be asked

  // Where the entry of a module is.
  std::string PathOf(const Options& options, const Module& module) const;

 private:
  struct Entry {
    // Offsets of return addresses, those of what is called there with kCalled; sorted.
    // `result` has their frames.
    std::vector<uint64_t> keys;
    ModuleResult result;

    // Null: it has none of that address.
    const std::vector<Frame>* Find(const Address& address) const;
  };
  struct Lookup {
    ModuleResult answer;           // with the frames that are known
    std::vector<Address> unknown;  // the addresses that are not
    std::vector<size_t> places;    // of these among all
  };

  Lookup LookUp(const std::optional<Entry>& known, std::span<const Address> addresses);
  // What an entry of another time says of a module that is gone, or replaced, `now`.
  ModuleResult FromBefore(const Entry& before, const Module& module,
                          std::span<const Address> addresses, ModuleState now);
  // What was known and what was found of `unknown`, each address once.
  static Entry Merge(std::optional<Entry> known, std::span<const Address> unknown,
                     ModuleResult found);
  std::optional<Entry> Load(const std::string& path) const;
  void Store(const std::string& path, const Entry& entry);

  const std::string directory_;
  const uint64_t most_bytes_;
  uint64_t hits_ = 0, misses_ = 0;
};

}  // namespace memtrace::symbolizer

#endif  // MEMTRACE_SYMBOLIZER_SYMBOL_CACHE_H_
