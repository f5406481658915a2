#include "preload/leak_scan/scan_territory.h"

#include <sys/mman.h>

#include "preload/leak_scan/block_places.h"
#include "preload/leak_scan/heap_territory.h"
#include "preload/process.h"

namespace memtrace {

using format::ScanRegionKind;
using format::ScanTag;

namespace {

constexpr size_t kPieceWords = kPage / kWord;  // of ScanTerritory::Part::pieces

// visit(i) for each bit of a word of bits, ascending.
template <typename Visit>
void ForEachBit(uint64_t bits, Visit visit) {
  for (; bits != 0; bits &= bits - 1) visit(static_cast<size_t>(__builtin_ctzll(bits)));
}

}  // namespace

void ScanTerritory::Add(uintptr_t begin, uintptr_t end) {
  if (begin >= end || end > kAddresses) return;
  parts_.Add({.begin = begin, .end = end});
  for (uintptr_t at = begin >> shift_; at <= (end - 1) >> shift_; ++at) {
    flags_[at] |= kMayBeTerritory;
  }
}

size_t ScanTerritory::WordsOf(const Part& part) {
  return (part.end - part.begin) / kWord / 64 + 2;
}

size_t ScanTerritory::PieceWordsOf(const Part& part) {
  return WordsOf(part) / kPieceWords / 64 + 1;
}

size_t ScanTerritory::LoadedWordsOf(const Part& part) {
  return (part.end - part.begin) / kPage / 64 + 2;
}

// The program may have little address space (RLIMIT_AS).
bool ScanTerritory::MakeFlags() {
  for (const int shift : {20, 26}) {
    flags_ = static_cast<uint8_t*>(arena_.TryAllocate(kAddresses >> shift));
    shift_ = shift;
    if (flags_ != nullptr) return true;
  }
  return false;
}

bool ScanTerritory::Find(const ScanMappings& mappings) {
  if (!MakeFlags()) return false;
  for (size_t i = 0; i < mappings.size(); ++i) {
    const ScanMapping& mapping = mappings[i];
    if (mapping.file && (mapping.protection & PROT_READ) != 0 && mapping.end <= kAddresses) {
      for (uintptr_t at = mapping.begin >> shift_; at <= (mapping.end - 1) >> shift_; ++at) {
        flags_[at] |= kMayBeFile;
      }
    }
    if (mapping.part != ScanMapping::Part::kRead) continue;
    if (mapping.kind == ScanRegionKind::kHeap) {
      Add(mapping.begin, mapping.end);
    } else if (mapping.kind == ScanRegionKind::kAnonymous) {
      ForEachBlockPlace(mapping.begin, mapping.end,
                        [this](uintptr_t begin, uintptr_t end) { Add(begin, end); });
    } else if (mapping.kind != ScanRegionKind::kRelro) {
      g_heap_territory.ForEach(mapping.begin, mapping.end, [&](uintptr_t begin, uintptr_t end) {
        Add(begin, end);
      });
    }
  }
  size_t words = 1;
  for (size_t i = 0; i < parts_.size(); ++i) {
    words += WordsOf(parts_[i]) + PieceWordsOf(parts_[i]) + LoadedWordsOf(parts_[i]);
  }
  auto* next = arena_.Array<uint64_t>(words);
  if (next == nullptr) return false;
  for (size_t i = 0; i < parts_.size(); ++i) {
    parts_[i].words = next;
    next += WordsOf(parts_[i]);
    parts_[i].pieces = next;
    next += PieceWordsOf(parts_[i]);
    parts_[i].loaded = next;
    next += LoadedWordsOf(parts_[i]);
  }
  return true;
}

size_t ScanTerritory::FirstBehind(uint64_t value) const {
  size_t low = 0, high = parts_.size();
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (parts_[middle].end <= value) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

ScanTerritory::Part* ScanTerritory::Find(uint64_t value) {
  Part* const last = last_;
  if (last != nullptr && value - last->begin < last->end - last->begin) return last;
  const size_t found = FirstBehind(value);
  if (found == parts_.size() || parts_[found].begin > value) return nullptr;
  return last_ = &parts_[found];
}

void ScanTerritory::NoteLoaded(uintptr_t begin, uintptr_t end) {
  for (size_t i = FirstBehind(begin); i < parts_.size() && parts_[i].begin < end; ++i) {
    Part& part = parts_[i];
    const uintptr_t base = Down(part.begin, kPage);
    const uintptr_t last = end < part.end ? end : part.end;
    for (uintptr_t at = begin > base ? Down(begin, kPage) : base; at < last; at += kPage) {
      const size_t page = (at - base) / kPage;
      part.loaded[page / 64] |= uint64_t{1} << (page % 64);
    }
  }
}

bool ScanTerritory::WasLoaded(const Part& part, uintptr_t address) {
  const size_t page = (address - Down(part.begin, kPage)) / kPage;
  return (part.loaded[page / 64] >> (page % 64) & 1) != 0;
}

// Blocks of glibc's begin at multiples of 16, so that what the heuristics about a word before
// a place can accept lies at 8 behind one.
void ScanTerritory::MarkTarget(uint64_t value, Part& part) {
  if (value % kWord != 0) return;
  if (g_process.allocator_is_glibc && !g_heap_territory.used() && value % 16 != 8) return;
  const uint64_t word = (value - Down(part.begin, kWord)) / kWord;
  uint64_t& bits = part.words[word / 64];
  if (bits == 0) {
    const size_t piece = word / 64 / kPieceWords;
    part.pieces[piece / 64] |= uint64_t{1} << (piece % 64);
  }
  bits |= uint64_t{1} << (word % 64);
}

// visit(place) for each word of the part that something points to, ascending.
template <typename Visit>
void ScanTerritory::ForEachMarked(const Part& part, Visit visit) {
  for (size_t i = 0; i < PieceWordsOf(part); ++i) {
    ForEachBit(part.pieces[i], [&](size_t bit) {
      const size_t first = (i * 64 + bit) * kPieceWords;
      const size_t end = first + kPieceWords < WordsOf(part) ? first + kPieceWords : WordsOf(part);
      for (size_t word = first; word < end; ++word) {
        ForEachBit(part.words[word], [&](size_t at) {
          visit(Down(part.begin, kWord) + (word * 64 + at) * kWord);
        });
      }
    });
  }
}

void ScanTerritory::WriteTargets(ScanWriter& out) const {
  bool open = false;
  uintptr_t last = 0;
  for (size_t i = 0; i < parts_.size(); ++i) {
    const Part& part = parts_[i];
    ForEachMarked(part, [&](uintptr_t place) {
      if (place < part.begin + kWord || place >= part.end) return;
      if (!WasLoaded(part, place - kWord)) return;
      const uint64_t before = Load(place - kWord);
      const bool more = place >= part.begin + 3 * kWord && WasLoaded(part, place - 3 * kWord);
      const uint64_t length = more ? Load(place - 3 * kWord) : 1;
      const uint64_t capacity = more ? Load(place - 2 * kWord) : 0;
      const bool string = length <= capacity && capacity < uint64_t{1} << 40;
      if ((before == 0 || before >= kAddresses) && !string) return;
      if (open && !out.HasRoom()) {
        out.End();
        open = false;
      }
      if (!open) {
        out.Begin(ScanTag::kTargets);
        open = true;
        last = 0;
      }
      format::RecordEncoder& record = out.encoder();
      record.Number(place - last);
      record.Number(before);
      record.Number(string);
      if (string) {
        record.Number(length);
        record.Number(capacity);
      }
      last = place;
    });
  }
  if (open) out.End();
}

}  // namespace memtrace
