#include "preload/written_stacks.h"

#include <atomic>
#include <cstring>

#include "format/event_words.h"
#include "preload/own_memory.h"

namespace memtrace {

bool WrittenStacks::Array::Reserve(size_t wanted) {
  if (wanted <= bytes) return true;
  size_t larger = bytes == 0 ? 16 << 10 : bytes * 2;
  while (larger < wanted) larger *= 2;
  void* memory = OwnMap(larger, /*touch=*/false);
  if (memory == nullptr) return false;
  // A handler may jump away from any of this.
  void* const old = data;
  const size_t old_bytes = bytes;
  if (old != nullptr) memcpy(memory, old, old_bytes);
  data = memory;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  bytes = larger;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (old != nullptr) OwnUnmap(old, old_bytes);
  return true;
}

uint32_t WrittenStacks::Take() {
  uint32_t index = free_;
  if (index != 0) {
    free_ = node(index).parent;
  } else {
    if (used_ > UINT32_MAX - 1 || !nodes_.Reserve((used_ + 1) * sizeof(Node))) return 0;
    index = static_cast<uint32_t>(used_++);
  }
  ++live_;
  return index;
}

void WrittenStacks::Release(uint32_t index) {
  while (index != 0 && --node(index).references == 0) {
    const uint32_t parent = node(index).parent;
    node(index).parent = free_;
    free_ = index;
    --live_;
    index = parent;
  }
}

bool WrittenStacks::Define(uint32_t slot_number, uint32_t parent, uint64_t key,
                           uint32_t* index) {
  if (!slots_.Reserve((size_t{slot_number} + 1) * sizeof(uint32_t))) return false;
  *index = Take();
  if (*index == 0) return false;
  if (parent != 0) ++node(parent).references;
  node(*index) = {.key = key, .parent = parent, .references = 1};
  Release(slot(slot_number));
  slot(slot_number) = *index;
  return true;
}

bool WrittenStacks::DefinePath(const uint64_t* words) {
  const uint32_t parent_slot = format::PathParent(words[0]);
  // Looked up before the slots are defined anew: it may be among them.
  uint32_t index = SlotOrNone(parent_slot);
  if (parent_slot != format::kNoSlot && index == 0) return false;  // that nobody defined
  const uint32_t first = format::PathFirst(words[0]);
  for (uint32_t i = 0; i < format::PathNodes(words[0]); ++i) {
    if (first + i > format::kMaxSlot) return false;
    if (!Define(first + i, index, words[1 + i], &index)) return false;
  }
  return true;
}

bool WrittenStacks::Read(const uint64_t* word, const uint64_t* end) {
  while (word < end) {
    const uint32_t words = format::EventWords(*word);
    bool good = words != 0 && words <= static_cast<size_t>(end - word);
    if (good && format::KindOf(*word) == format::EventKind::kPath) good = DefinePath(word);
    if (!good) {
      Forget();
      return false;
    }
    word += words;
  }
  return true;
}

void WrittenStacks::Forget() {
  if (slots_.data != nullptr) memset(slots_.data, 0, slots_.bytes);
  used_ = 1;
  live_ = 0;
  free_ = 0;
}

WrittenStacks::Stack WrittenStacks::Find(uint32_t slot_number, uint64_t* keys, size_t max) const {
  Stack stack;
  uint32_t index = SlotOrNone(slot_number);
  stack.defined = index != 0;
  for (; index != 0; index = node(index).parent) {
    const uint64_t key = node(index).key;
    if (key >> 48 == format::kNoModule) {
      stack.marker = static_cast<format::StackMarker>(key & format::kAddressMask);
    } else if (stack.frames < max) {
      keys[stack.frames++] = key;
    } else {
      stack.defined = false;
    }
  }
  return stack;
}

}  // namespace memtrace
