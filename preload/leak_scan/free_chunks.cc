#include "preload/leak_scan/free_chunks.h"

#include "preload/leak_scan/scan_words.h"
#include "preload/recorder.h"

namespace memtrace {
namespace {

using format::ScanRegionKind;

constexpr uintptr_t kAlignment = 16;
constexpr uintptr_t kSmallest = 32;
constexpr uint64_t kPreviousInUse = 1;  // its other flags: GlibcChunk

// A chunk: the size of the one before it, if that is free; its own, with flags; if it is free,
// its neighbours in its list, and of large ones two more.
constexpr uintptr_t kSizeAt = kWord, kForward = 2 * kWord, kBackward = 3 * kWord;
constexpr uintptr_t kFreeHeader = 6 * kWord;

}  // namespace

bool FreeChunks::IsReadable(uintptr_t chunk, uintptr_t part_begin, uintptr_t part_end) {
  if (chunk % kWord != 0 || chunk >= kAddresses) return false;
  if (chunk >= part_begin && chunk < part_end) return part_end - chunk >= kFreeHeader;
  if (lists_ == nullptr || chunk < lists_->begin || chunk >= lists_->end) {
    const ScanMapping* const mapping = mappings_.Find(chunk);
    if (mapping == nullptr || mapping->kind != ScanRegionKind::kModuleData ||
        mapping->part != ScanMapping::Part::kRead) {
      return false;
    }
    lists_ = mapping;
  }
  return lists_->end - chunk >= kFreeHeader;
}

bool FreeChunks::IsInItsList(uintptr_t chunk, uintptr_t part_begin, uintptr_t part_end) {
  const uintptr_t forward = Load(chunk + kForward), backward = Load(chunk + kBackward);
  return IsReadable(forward, part_begin, part_end) && IsReadable(backward, part_begin, part_end) &&
         Load(forward + kBackward) == chunk && Load(backward + kForward) == chunk;
}

uintptr_t FreeChunks::Step(uintptr_t part_begin, uintptr_t part_end) {
  const uintptr_t chunk = next_;
  next_ = kLost;
  if (chunk % kAlignment != 0 || chunk >= part_end || part_end - chunk < kSmallest) return 0;
  const uint64_t word = Load(chunk + kSizeAt);
  const uint64_t size = word & ~GlibcChunk::kFlags;
  if ((word & (GlibcChunk::kMapped | GlibcChunk::kOtherArena)) != 0 || size % kAlignment != 0 ||
      size < kSmallest || size > break_ - chunk || chunk > break_) {
    return 0;
  }
  const uintptr_t end = chunk + size;
  if (end == break_) {  // the last one
    free_until_ = end;
    return chunk + 2 * kWord;
  }
  next_ = end;
  if (size < kLeast || end >= part_end || part_end - end < kSmallest) return 0;
  if ((Load(end + kSizeAt) & kPreviousInUse) != 0 || Load(end) != size ||
      !IsInItsList(chunk, part_begin, part_end)) {
    return 0;
  }
  free_until_ = end;
  return chunk + kFreeHeader;
}

}  // namespace memtrace
