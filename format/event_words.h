// Events: what a thread writes to its ring, in 64-bit little-endian words.
//
// An event is one head word and, depending on its kind, more words. The head:
//
//   bits  0..47  address (or another 48-bit operand)
//   bits 48..51  EventKind
//   bits 52..63  12 bits whose meaning depends on the kind
//
// Everything the program does often is short: a free is one word, a malloc two.
// Times are not on each event; a kTime word bounds the events around it. Within
// a thread the order of the words is the order of the events; between threads it
// follows from the times and from the alternation of alloc and free on an address.
//
// A stack is named by the slot of its innermost node. A kPath event (re)defines
// slots of this thread: slots are per thread and reused; a definition holds until
// the next one of the same slot in the same thread.

#ifndef MEMTRACE_FORMAT_EVENT_WORDS_H_
#define MEMTRACE_FORMAT_EVENT_WORDS_H_

#include <cstdint>

namespace memtrace::format {

inline constexpr uint64_t kAddressMask = (uint64_t{1} << 48) - 1;

enum class EventKind : uint8_t {
  kInvalid = 0,       // never written
  kMalloc = 1,        // 2 words: address, detail = AllocDetail; size:32 | slot:32 << 32
  kCalloc = 2,        // the same
  kRealloc = 3,       // the same: result of the kReallocIntent before it in this thread
  kWideAlloc = 4,     // 4 words, see WideAlloc; detail = AllocFunction
  kFree = 5,          // 1 word: address; written before the real free. detail bit 0:
                      //   a word follows with the slot of the stack of the free
  kReallocIntent = 6, // 1 word: the old address; written before the real realloc
  kPath = 7,          // 1 + n words, n = detail, at least 1: n nodes, each the child of the one
                      //   before; bits 0..23 the parent's slot of the first, 24..47 the slot of
                      //   the first, then counting up; a word each: pc:48 | instance:16 << 48
  kTime = 8,          // 1 word: bits 0..47 ticks low, detail = ticks bits 48..59
  kExtended = 9,      // bits 0..15 words after the head, 16..31 ExtendedType; see below
};

// Address 0 in an alloc event: the allocator returned NULL. For kRealloc after a
// kReallocIntent that means, with a size above 0, that the realloc failed and the
// old block stays; with size 0, that it freed the old block (glibc's realloc(p, 0)).
// A kRealloc without an intent before it is realloc(NULL, size).
//
// A kPath's parent slot is looked up before its own slots are redefined: it may
// be among them.

// Detail of kMalloc, kCalloc, kRealloc: bits 0..10 are usable minus requested
// bytes, kUnknownWaste if not known; bit 11: from an arena other than main's.
inline constexpr uint32_t kUnknownWaste = 0x7ff;
inline constexpr uint32_t kOtherArena = 0x800;

enum class AllocFunction : uint8_t {
  kMalloc = 1, kCalloc = 2, kRealloc = 3, kReallocarray = 4, kPosixMemalign = 5,
  kAlignedAlloc = 6, kMemalign = 7, kValloc = 8, kPvalloc = 9,
  // Never in an alloc event: the blocks of kCustomAlloc, of a pool and of none.
  kPoolAlloc = 10, kBlockAlloc = 11,
};

// kWideAlloc: whatever does not fit the short form: 4 GiB and more, aligned functions, blocks with
// a mapping of their own, reallocarray; as a kRealloc, if the function is one of that kind.
//   word 1  slot:32 | alignment log2:8 << 32 | WideFlags:8 << 40
//   word 2  requested bytes
//   word 3  usable bytes, 0 if not known
enum WideFlags : uint8_t {
  kWideMapped = 1,      // has a mapping of its own (glibc: IS_MMAPPED)
  kWideOtherArena = 2,
};

// Extended events. Word 1 is the first after the head.
enum class ExtendedType : uint16_t {
  // word 1 address; 2 length; 3 prot:32 | flags:32 << 32; 4 fd (signed) :32 | slot:32 << 32;
  // 5 offset; 6.. file name, NUL padded, may be absent. Written after the call.
  kMmap = 1,
  // word 1 address; 2 length; 3 slot. Written before the call: munmap(), or an mremap() that may
  // give up some of its old range, which is all of it here.
  kMunmap = 2,
  // word 1 old address; 2 old length; 3 new address; 4 new length; 5 flags:32 | slot:32 << 32;
  // 6 1: the old range is that of the kMunmap before it in this thread; else 0, or absent. Written
  // after the call.
  kMremap = 3,
  // word 1 old break; 2 new break; 3 slot; the program's own brk or sbrk. Written after the call.
  kBrk = 4,
  // word 1 address; 2 length (0 unknown); 3 shmid (signed) :32 | flags:32 << 32; 4 slot. Written
  // after the call.
  kShmat = 5,
  // word 1 address; 2 slot. Written before the call.
  kShmdt = 6,
  // libc's allocator moved the break: word 1 old break; 2 new break; 3 slot (of the event before)
  kHeapGrowth = 7,
  // libc's allocator made or resized a heap of another arena: word 1 heap base; 2 bytes now;
  // 3 slot
  kArenaGrowth = 8,
  // word 1 minor faults; 2 major faults; 3 resident bytes (0 unknown); 4 peak resident bytes;
  // 5 minor faults caused by the tracer; 6 voluntary:32 | involuntary:32 << 32 context switches
  kUsage = 9,
  // the thread's name: word 1.. the bytes, NUL padded
  kThreadName = 10,
  // word 1 address; 2 length, 0 of shmdt. The kMunmap (of a munmap or an mremap) or kShmdt of the
  // thread before it did not happen. Written after the call.
  kMunmapFailed = 11,

  // The program tells these by memtrace.h. Each has a kTime word of its own in front.
  // word 1 the pool's address; 2 slot; 3.. name, NUL padded, may be absent
  kPoolCreate = 12,
  // word 1 the pool's address; 2 slot. All its blocks end.
  kPoolDestroy = 13,
  // A block that the program's own allocator gave out. word 1 address; 2 bytes; 3 address of
  // its pool, 0 none; 4 slot
  kCustomAlloc = 14,
  // word 1 address; 2 address of its pool, 0 none
  kCustomFree = 15,
  // word 1 an address: the block that it points to, or into, is never a leak
  kIgnoreBlock = 16,
  // Blocks that the thread allocates from here on are never leaks: word 1 the depth of
  // memtrace_disable(); 0: they may be leaks again
  kLeaksDisabled = 17,
  // word 1 PhaseEdge; 2 slot; 3.. name, NUL padded
  kPhase = 18,
  // word 1: 1 the recording is stopped (see kStoppedSlot), 0 it goes on; 2 slot
  kRecordingStopped = 19,
};

enum class PhaseEdge : uint32_t { kBegin = 1, kEnd = 2, kMark = 3 };

constexpr uint64_t Head(EventKind kind, uint64_t address, uint32_t detail = 0) {
  return (address & kAddressMask) | static_cast<uint64_t>(kind) << 48 |
         static_cast<uint64_t>(detail & 0xfff) << 52;
}
constexpr EventKind KindOf(uint64_t head) { return static_cast<EventKind>(head >> 48 & 0xf); }
constexpr uint64_t AddressOf(uint64_t head) { return head & kAddressMask; }
// kMalloc, kCalloc or kRealloc.
constexpr bool IsShortAlloc(EventKind kind) {
  return static_cast<unsigned>(kind) - static_cast<unsigned>(EventKind::kMalloc) <= 2;
}
// A kFree without a stack: behind the four bits of the kind stands the detail's first.
constexpr bool IsPlainFree(uint64_t head) {
  return (head >> 48 & 0x1f) == static_cast<uint64_t>(EventKind::kFree);
}
constexpr uint32_t DetailOf(uint64_t head) { return static_cast<uint32_t>(head >> 52); }

constexpr uint64_t ExtendedHead(ExtendedType type, uint32_t words_after) {
  return Head(EventKind::kExtended, words_after | static_cast<uint64_t>(type) << 16);
}
constexpr uint32_t ExtendedWords(uint64_t head) { return head & 0xffff; }
constexpr ExtendedType ExtendedTypeOf(uint64_t head) {
  return static_cast<ExtendedType>(head >> 16 & 0xffff);
}

// kTime words carry 60 bits of the clock. What else has ticks, headers and records, is compared with
// them by these bits.
inline constexpr uint64_t kTickMask = (uint64_t{1} << 60) - 1;

constexpr uint64_t TimeWord(uint64_t ticks) {
  return Head(EventKind::kTime, ticks, static_cast<uint32_t>(ticks >> 48));
}
constexpr uint64_t TicksOf(uint64_t time_word) {
  return AddressOf(time_word) | static_cast<uint64_t>(DetailOf(time_word)) << 48;
}
static_assert(TicksOf(TimeWord(UINT64_MAX)) == kTickMask);

constexpr uint64_t PathHead(uint32_t parent_slot, uint32_t first_slot, uint32_t nodes) {
  return Head(EventKind::kPath,
              (parent_slot & 0xffffff) | static_cast<uint64_t>(first_slot & 0xffffff) << 24, nodes);
}
constexpr uint32_t PathParent(uint64_t head) { return head & 0xffffff; }
constexpr uint32_t PathFirst(uint64_t head) { return head >> 24 & 0xffffff; }
constexpr uint32_t PathNodes(uint64_t head) { return DetailOf(head); }
constexpr uint64_t NodeWord(uint64_t pc, uint32_t instance) {
  return (pc & kAddressMask) | static_cast<uint64_t>(instance & 0xffff) << 48;
}
constexpr uint64_t NodePc(uint64_t word) { return word & kAddressMask; }
constexpr uint32_t NodeInstance(uint64_t word) { return static_cast<uint32_t>(word >> 48); }

// Slot 0 is "no stack" and the parent of every outermost node.
inline constexpr uint32_t kNoSlot = 0;
inline constexpr uint32_t kMaxSlot = 0xffffff;
// In place of a slot, of an allocation while the program had stopped the recording
// (memtrace_stop()): it has no stack and is in no figure. That the block exists is told, so that
// its free is known for what it is, and what it points to is not taken for lost.
inline constexpr uint32_t kStoppedSlot = kMaxSlot + 1;
inline constexpr uint32_t kMaxPathNodes = 0xfff;

// Words of the event that begins with `head`, the head included; 0 if invalid.
constexpr uint32_t EventWords(uint64_t head) {
  switch (KindOf(head)) {
    case EventKind::kMalloc:
    case EventKind::kCalloc:
    case EventKind::kRealloc:
      return 2;
    case EventKind::kPath:
      return DetailOf(head) == 0 ? 0 : 1 + DetailOf(head);
    case EventKind::kWideAlloc:
      return 4;
    case EventKind::kFree:
      return 1 + (DetailOf(head) & 1);
    case EventKind::kReallocIntent:
    case EventKind::kTime:
      return 1;
    case EventKind::kExtended:
      return 1 + ExtendedWords(head);
    case EventKind::kInvalid:
      break;
  }
  return 0;
}

}  // namespace memtrace::format

#endif  // MEMTRACE_FORMAT_EVENT_WORDS_H_
