#include "preload/leak_scan/arena_lists.h"

#include "preload/leak_scan/scan_words.h"

namespace memtrace {
namespace {

// From the lowest: the last chunk of the heap, and the remainder of the last split; two words for
// each bin, of which number 0 does not exist. Bins are chunks of which the words of the list alone
// are there: their addresses are two words before these.
constexpr uintptr_t kBins = 127;
constexpr uintptr_t kNextAt = 2 * kWord, kLastAt = 3 * kWord;
constexpr uintptr_t kBinBytes = 2 * kWord;
// The threads stand, perhaps in the midst of malloc: a few lists may not be rings.
constexpr uintptr_t kFewestRings = kBins - 7;

class Lists {
 public:
  Lists(const ScanMapping& data, const ScanMappings& mappings) : data_(data), mappings_(mappings) {}

  // Whether the bin at the address is an empty list. Its words can be read.
  static bool IsEmpty(uintptr_t bin) {
    return Load(bin + kNextAt) == bin && Load(bin + kLastAt) == bin;
  }

  // How many are rings if the bins begin there; 0: they do not.
  uintptr_t RingsFrom(uintptr_t first) const {
    if (first < data_.begin || first >= data_.end ||
        data_.end - first < kBins * kBinBytes + kNextAt) {
      return 0;
    }
    uintptr_t rings = 0;
    for (uintptr_t i = 0; i < kBins; ++i) {
      if (i - rings > kBins - kFewestRings) return 0;
      const uintptr_t bin = first + i * kBinBytes;
      rings += IsEmpty(bin) || IsRing(bin) ? 1 : 0;
    }
    return rings;
  }

 private:
  bool IsRing(uintptr_t bin) const {
    const uintptr_t forward = Load(bin + kNextAt), backward = Load(bin + kLastAt);
    return IsReadable(forward) && IsReadable(backward) && Load(forward + kLastAt) == bin &&
           Load(backward + kNextAt) == bin;
  }
  // Chunks of the main arena are in [heap], or where there was no room for it.
  bool IsReadable(uintptr_t chunk) const {
    if (chunk % kWord != 0 || chunk >= kAddresses) return false;
    const ScanMapping* const mapping = mappings_.Find(chunk);
    return mapping != nullptr && mapping->part == ScanMapping::Part::kRead &&
           mapping->anonymous() && mapping->end - chunk >= kLastAt + kWord;
  }

  const ScanMapping& data_;
  const ScanMappings& mappings_;
};

}  // namespace

OwnRange FindArenaLists(const ScanMapping& data, const ScanMappings& mappings) {
  const Lists lists(data, mappings);
  if (data.end - data.begin < kNextAt + kBinBytes) return {};
  const uintptr_t last = data.end - kNextAt - kBinBytes;
  for (uintptr_t at = Up(data.begin, kWord); at <= last; at += kWord) {
    if (!Lists::IsEmpty(at)) continue;
    // The first of them that is empty. Which it is, the others tell: from the right one on most
    // are rings.
    uintptr_t first = 0, most = 0;
    for (uintptr_t i = 0; i < kBins && i * kBinBytes <= at; ++i) {
      const uintptr_t rings = lists.RingsFrom(at - i * kBinBytes);
      if (rings > most) {
        most = rings;
        first = at - i * kBinBytes;
      }
    }
    if (most == 0) continue;
    // The last chunk and the remainder lie where the first bin begins: in front of its words.
    return {first, first + kNextAt + kBins * kBinBytes};
  }
  return {};
}

}  // namespace memtrace
