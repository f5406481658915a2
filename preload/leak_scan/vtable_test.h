// VtableTest: whether a word of a block looks like the address of a virtual function table. A C++
// object with more than one base has several, and the program may have a pointer to an inner
// base only: `multipleinheritance` in docs/leaks.md ("Interior pointers that count as starts").

#ifndef MEMTRACE_PRELOAD_LEAK_SCAN_VTABLE_TEST_H_
#define MEMTRACE_PRELOAD_LEAK_SCAN_VTABLE_TEST_H_

#include <cstddef>
#include <cstdint>

#include "preload/leak_scan/scan_mappings.h"
#include "preload/leak_scan/scan_memory.h"

namespace memtrace {

class VtableTest {
 public:
  // `in_copy`: this is a copy of the process that may die of a file that becomes shorter at this
  // moment: what the kernel could read a moment ago is loaded.
  VtableTest(const ScanMappings& mappings, bool in_copy)
      : mappings_(mappings), in_copy_(in_copy) {}

  // Once, before the others. False: no memory.
  bool Prepare(ScanArena& arena);

  // Whether `value` is aligned and in a mapped file, and the first two words there that are not 0
  // are addresses of code.
  bool LooksLikeVtable(uint64_t value);

  // Whether the kernel can read this part of a mapped file.
  bool CanLoad(uintptr_t begin, size_t bytes);

 private:
  bool ReadsAsVtable(uint64_t value);

  const ScanMappings& mappings_;
  const bool in_copy_;
  // A value that was looked at, and the answer in its lowest bit.
  static constexpr size_t kCache = 4096;
  uint64_t* cache_ = nullptr;
  // Pages of which the kernel could read a word.
  static constexpr size_t kPages = 1024;
  uint64_t* pages_ = nullptr;
};

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_LEAK_SCAN_VTABLE_TEST_H_
