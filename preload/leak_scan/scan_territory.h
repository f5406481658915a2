// ScanTerritory: where blocks of the heap may lie, and which words of it something points to.
//
// A value is looked up in two steps: a byte for each MiB of the address space (where there is no
// room for 128 MiB of these, for each 64 MiB), which for nearly all values that are no pointers
// says no, then the list.
//
// The bits for the words of a TiB are 16 GiB, and take seconds to be looked through: only pieces of
// them are that have any.

#ifndef MEMTRACE_PRELOAD_LEAK_SCAN_SCAN_TERRITORY_H_
#define MEMTRACE_PRELOAD_LEAK_SCAN_SCAN_TERRITORY_H_

#include <cstddef>
#include <cstdint>

#include "preload/leak_scan/scan_mappings.h"
#include "preload/leak_scan/scan_memory.h"
#include "preload/leak_scan/scan_words.h"
#include "preload/leak_scan/scan_writer.h"

namespace memtrace {

class ScanTerritory {
 public:
  explicit ScanTerritory(ScanArena& arena) : arena_(arena), parts_(arena) {}

  // Once. False: no address space for the tables.
  bool Find(const ScanMappings& mappings);

  // What may be in the granule of a value. The value must be below kAddresses.
  enum : uint8_t { kMayBeTerritory = 1, kMayBeFile = 2 };
  struct Granules {
    const uint8_t* flags;
    int shift;
    uint8_t Flags(uint64_t value) const { return flags[value >> shift]; }
  };
  // The tables for a loop over words, which keeps them in registers. They hold until the
  // territory is found anew.
  Granules granules() const { return {flags_, shift_}; }

  // True: `value` points into the territory; remembers that for WriteTargets().
  bool Mark(uint64_t value) {
    Part* const part = Find(value);
    if (part == nullptr) return false;
    MarkTarget(value, *part);
    return true;
  }

  // The pages of [begin, end) were loaded, so that WriteTargets() may do it again.
  void NoteLoaded(uintptr_t begin, uintptr_t end);

  // kTargets: what stands before the places that something points to, which the heuristics about
  // interior pointers ask for. Of other pages nothing is told: they may be guard regions, or
  // userfaultfd's that nobody fills while the threads stand.
  void WriteTargets(ScanWriter& out) const;

 private:
  struct Part {
    uintptr_t begin, end;
    uint64_t* words = nullptr;   // a bit for each word of it that something points to
    uint64_t* pieces = nullptr;  // a bit for each piece of `words` that has bits, 4 KiB each
    uint64_t* loaded = nullptr;  // a bit for each page of it that was
  };

  void Add(uintptr_t begin, uintptr_t end);
  static size_t WordsOf(const Part& part);
  static size_t PieceWordsOf(const Part& part);
  static size_t LoadedWordsOf(const Part& part);
  // The first that ends behind `value`.
  size_t FirstBehind(uint64_t value) const;
  Part* Find(uint64_t value);
  static bool WasLoaded(const Part& part, uintptr_t address);
  static void MarkTarget(uint64_t value, Part& part);
  template <typename Visit>
  static void ForEachMarked(const Part& part, Visit visit);

  bool MakeFlags();

  ScanArena& arena_;
  uint8_t* flags_ = nullptr;
  int shift_ = 0;
  ScanArray<Part> parts_;
  Part* last_ = nullptr;  // that was found
};

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_LEAK_SCAN_SCAN_TERRITORY_H_
