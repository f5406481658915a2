// ScanMappings: /proc/self/maps, and what of it may hold pointers.

#ifndef MEMTRACE_PRELOAD_LEAK_SCAN_SCAN_MAPPINGS_H_
#define MEMTRACE_PRELOAD_LEAK_SCAN_SCAN_MAPPINGS_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "format/memory_scan.h"
#include "preload/leak_scan/scan_memory.h"

namespace memtrace {

struct ScanMapping {
  uintptr_t begin = 0, end = 0;
  uint64_t offset = 0;  // in its file
  int protection = 0;
  bool shared = false;
  bool file = false;     // has an inode
  std::string_view path;  // as in the file, "" for none
  format::ScanRegionKind kind = format::ScanRegionKind::kOther;
  // What a scan does with it: reads it, names it as not read, or leaves it out.
  enum class Part : uint8_t { kNone, kRead, kNotRead } part = Part::kNone;

  bool anonymous() const { return !shared && !file; }
};

class ScanMappings {
 public:
  explicit ScanMappings(ScanArena& arena) : arena_(arena), all_(arena) {}

  // False: there is no /proc, or no memory. Then error() is -errno, where the kernel said why.
  bool Read();
  long error() const { return error_; }
  // The same of a text as in /proc/self/maps.
  bool ReadForTesting(std::string_view text) {
    text_ = text;
    return Parse() && Classify();
  }

  size_t size() const { return all_.size(); }
  const ScanMapping& operator[](size_t i) const { return all_[i]; }
  // The one that has `address`, or null.
  const ScanMapping* Find(uintptr_t address) const;

 private:
  bool ReadText();
  bool Parse();
  bool Classify();

  ScanArena& arena_;
  ScanArray<ScanMapping> all_;
  std::string_view text_;
  long error_ = 0;
};

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_LEAK_SCAN_SCAN_MAPPINGS_H_
