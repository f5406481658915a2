#include "report/event_columns.h"

#include <algorithm>
#include <cstring>

#include "absl/container/flat_hash_map.h"
#include "format/event_words.h"
#include "format/varint.h"
#include "report/event_block.h"

namespace memtrace::report {

using format::EventKind;

namespace {

// The byte of an event: its kind, or kLiteral, in the low half; guesses in the high one.
constexpr uint8_t kLiteral = 0;
// kMalloc, kCalloc, kRealloc:
constexpr uint8_t kDetailGuessed = 0x10, kSizeGuessed = 0x20, kAddressGuessed = 0x40,
                  kSlotGuessed = 0x80;
// kFree, kReallocIntent:
constexpr uint8_t kOfBefore = 0x10;  // not allocated in this block
constexpr uint8_t kWithStack = 0x20;
// kPath:
constexpr uint8_t kParentIsLast = 0x10, kSlotIsNext = 0x20, kOneNode = 0x40;

constexpr unsigned kTableBits = 14;
constexpr uint32_t kTableMask = (1u << kTableBits) - 1;
// Words of one literal, at most: longer ones are several.
constexpr size_t kLongestLiteral = 1 << 16;

uint64_t ZigZag(int64_t value) {
  return static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63);
}
int64_t UnZigZag(uint64_t value) { return static_cast<int64_t>(value >> 1 ^ (~(value & 1) + 1)); }
// The difference of two addresses of 48 bits, signed.
int64_t Difference(uint64_t a, uint64_t b) { return static_cast<int64_t>((a - b) << 16) >> 16; }

// Most differences are multiples of 16: bit 0 tells that they are not.
uint64_t PackDifference(uint64_t a, uint64_t b) {
  const int64_t d = Difference(a, b);
  return (d & 15) == 0 ? ZigZag(d >> 4) << 1 : ZigZag(d) << 1 | 1;
}
uint64_t UnpackDifference(uint64_t packed, uint64_t b) {
  const auto d = static_cast<uint64_t>(UnZigZag(packed >> 1));
  return (b + ((packed & 1) != 0 ? d : d << 4)) & format::kAddressMask;
}

// What glibc makes usable for a request of `size` when it splits nothing off.
uint64_t GuessedUsable(uint64_t size) {
  return std::max<uint64_t>(24, ((size + 23) & ~uint64_t{15}) - 8);
}
uint32_t GuessedDetail(uint64_t size, uint32_t arena) {
  return static_cast<uint32_t>(GuessedUsable(size) - size) | arena;
}
uint64_t Usable(uint64_t size, uint32_t detail) {
  const uint32_t waste = detail & format::kUnknownWaste;
  return waste == format::kUnknownWaste ? GuessedUsable(size) : size + waste;
}
uint8_t ClassOf(uint64_t usable) {
  return static_cast<uint8_t>(std::min<uint64_t>(usable >> 4, 255));
}

uint32_t HashOf(uint64_t value) {
  return static_cast<uint32_t>(value * 0x9e3779b97f4a7c15 >> (64 - kTableBits));
}

// The free blocks of a size, the latest last; the oldest are forgotten.
class FreeList {
 public:
  static constexpr uint32_t kDepth = 16;

  void Clear() { size_ = 0; }
  void Push(uint64_t address) {
    addresses_[++top_ % kDepth] = address;
    size_ = std::min(size_ + 1, kDepth);
  }
  uint32_t size() const { return size_; }
  // Number `i`, 1 the latest.
  uint64_t At(uint32_t i) const { return addresses_[(top_ - i + 1) % kDepth]; }
  void Take(uint32_t i) {
    for (; i > 1; --i) addresses_[(top_ - i + 1) % kDepth] = addresses_[(top_ - i + 2) % kDepth];
    --top_;
    --size_;
  }
  // 0: not among them.
  uint32_t Find(uint64_t address) const {
    for (uint32_t i = 1; i <= size_; ++i) {
      if (At(i) == address) return i;
    }
    return 0;
  }

 private:
  uint64_t addresses_[kDepth];
  uint32_t top_ = 0, size_ = 0;
};

// Reads one column; past its end everything is 0 and ok() no more.
class ColumnReader {
 public:
  explicit ColumnReader(const std::vector<uint8_t>& column)
      : next_(column.data()), end_(column.data() + column.size()) {}

  uint64_t Number() {
    if (next_ != end_ && *next_ < 0x80) [[likely]]
      return *next_++;
    uint64_t value;
    const uint8_t* after = next_ == end_ ? nullptr : format::GetVarint(next_, end_, &value);
    if (after == nullptr) {
      next_ = end_;
      ok_ = false;
      return 0;
    }
    next_ = after;
    return value;
  }
  bool Bytes(void* out, size_t size) {
    if (static_cast<size_t>(end_ - next_) < size) return ok_ = false;
    memcpy(out, next_, size);
    next_ += size;
    return true;
  }
  bool at_end() const { return next_ == end_; }
  bool ok() const { return ok_; }

 private:
  const uint8_t* next_;
  const uint8_t* const end_;
  bool ok_ = true;
};

void Append(std::vector<uint8_t>* column, uint64_t value) {
  if (value < 0x80) {
    column->push_back(static_cast<uint8_t>(value));
    return;
  }
  uint8_t buffer[format::kMaxVarintBytes];
  column->insert(column->end(), buffer, format::PutVarint(buffer, value));
}

}  // namespace

struct EventColumns::Tables {
  struct Allocation {
    uint64_t address;
    uint8_t size_class;
  };

  void Reset() {
    last_slot = last_node = arena = 0;
    last_end = last_freed = last_pc = last_ticks = 0;
    last_freed_class = 0;
    allocations.clear();
    pcs.assign(1, 0);
    memset(next_slot, 0, sizeof(next_slot));
    memset(size_of, 0, sizeof(size_of));
    memset(pc_of, 0, sizeof(pc_of));
    memset(pc_behind, 0, sizeof(pc_behind));
    for (FreeList& list : free_lists) list.Clear();
  }

  uint32_t& SlotBehind(uint32_t slot) { return next_slot[slot & kTableMask]; }
  uint32_t& SizeOf(uint32_t slot) { return size_of[slot & kTableMask]; }

  // Both sides tell the tables of each event when they know it.
  void Allocated(uint64_t address, uint64_t size, uint32_t detail) {
    const uint64_t usable = Usable(size, detail);
    last_end = address + usable + 8;
    arena = detail & format::kOtherArena;
    allocations.push_back({address, ClassOf(usable)});
  }
  void Freed(const Allocation* block, uint64_t address) {
    last_freed = address;
    if (block == nullptr) return;
    last_freed_class = block->size_class;
    free_lists[block->size_class].Push(address);
  }
  // A realloc left its block where it was.
  void FreedAgainAllocated() {
    FreeList& list = free_lists[last_freed_class];
    if (list.size() > 0 && list.At(1) == last_freed) list.Take(1);
  }
  void Defined(uint32_t slot, uint32_t parent, uint64_t pc) {
    pc_behind[HashOf(pc_of[parent & kTableMask])] = pc;
    pc_of[slot & kTableMask] = pc;
    last_node = slot;
    last_pc = pc;
  }
  uint64_t GuessedPc(uint32_t parent) const {
    return pc_behind[HashOf(pc_of[parent & kTableMask])];
  }

  uint32_t last_slot, last_node, arena;
  uint64_t last_end, last_freed, last_pc, last_ticks;
  uint8_t last_freed_class;
  std::vector<Allocation> allocations;  // of this block, in order
  std::vector<uint64_t> pcs;            // by number, from 1; instance in the high 16 bits
  uint32_t next_slot[kTableMask + 1];
  uint32_t size_of[kTableMask + 1];
  uint64_t pc_of[kTableMask + 1];      // of a node, by slot
  uint64_t pc_behind[kTableMask + 1];  // of the latest child of a frame
  FreeList free_lists[256];

  // The coder's own: the latest allocation of an address, checked against `allocations`.
  static constexpr unsigned kFindBits = 17;
  std::vector<uint32_t> found;
  absl::flat_hash_map<uint64_t, uint32_t> number_of_pc;

  uint32_t& FoundAt(uint64_t address) {
    return found[address * 0x9e3779b97f4a7c15 >> (64 - kFindBits)];
  }
  // SIZE_MAX: not of this block, or forgotten.
  size_t Find(uint64_t address) {
    const uint32_t i = FoundAt(address);
    return i < allocations.size() && allocations[i].address == address ? i : SIZE_MAX;
  }
};

EventColumns::EventColumns() = default;
EventColumns::~EventColumns() = default;

void EventColumns::Encode(std::span<const uint64_t> words) {
  if (tables_ == nullptr) tables_ = std::make_unique<Tables>();
  Tables& t = *tables_;
  t.Reset();
  t.number_of_pc.clear();
  t.found.resize(size_t{1} << Tables::kFindBits);
  for (auto& column : columns_) column.clear();

  const auto slot = [&](uint32_t value, uint8_t* byte) {
    uint32_t& guess = t.SlotBehind(t.last_slot);
    if (guess == value) {
      *byte |= kSlotGuessed;
    } else {
      Append(&columns_[kSlots], value == t.last_node ? 0 : uint64_t{value} + 1);
    }
    guess = value;
    t.last_slot = value;
  };

  for (size_t i = 0; i < words.size();) {
    const uint64_t head = words[i];
    const size_t left = words.size() - i;
    size_t n = format::EventWords(head);
    if (n == 0 || n > left) n = left;
    const uint64_t address = format::AddressOf(head);
    const uint32_t detail = format::DetailOf(head);
    const auto kind = format::KindOf(head);
    auto byte = static_cast<uint8_t>(kind);
    bool done = false;
    switch (kind) {
      case EventKind::kMalloc:
      case EventKind::kCalloc:
      case EventKind::kRealloc: {
        if (n != 2) break;
        const auto size = static_cast<uint32_t>(words[i + 1]);
        const auto its_slot = static_cast<uint32_t>(words[i + 1] >> 32);
        slot(its_slot, &byte);
        uint32_t& guessed_size = t.SizeOf(its_slot);
        if (guessed_size == size) {
          byte |= kSizeGuessed;
        } else {
          Append(&columns_[kSizes], guessed_size = size);
        }
        if (GuessedDetail(size, t.arena) == detail) {
          byte |= kDetailGuessed;
        } else {
          Append(&columns_[kDetails], detail);
        }
        FreeList& list = t.free_lists[ClassOf(Usable(size, detail))];
        if (kind == EventKind::kRealloc && address == t.last_freed) {
          byte |= kAddressGuessed;
          t.FreedAgainAllocated();
        } else if (const uint32_t at = list.Find(address); at == 1 && kind != EventKind::kRealloc) {
          byte |= kAddressGuessed;
          list.Take(1);
        } else if (at != 0) {
          Append(&columns_[kAddresses], at << 1 | 1);
          list.Take(at);
        } else {
          Append(&columns_[kAddresses], PackDifference(address, t.last_end) << 1);
        }
        t.FoundAt(address) = static_cast<uint32_t>(t.allocations.size());
        t.Allocated(address, size, detail);
        done = true;
        break;
      }
      case EventKind::kFree:
      case EventKind::kReallocIntent: {
        const bool with_stack = n == 2;
        if (n > 2 || detail != with_stack || (with_stack && words[i + 1] >> 32 != 0)) break;
        const size_t found = t.Find(address);
        const Tables::Allocation* block = nullptr;
        if (found != SIZE_MAX) {
          block = &t.allocations[found];
          Append(&columns_[kAges], t.allocations.size() - found);
        } else {
          byte |= kOfBefore;
          Append(&columns_[kFreed], PackDifference(address, t.last_freed));
        }
        t.Freed(block, address);
        if (with_stack) {
          byte |= kWithStack;
          slot(static_cast<uint32_t>(words[i + 1]), &byte);
        }
        done = true;
        break;
      }
      case EventKind::kPath: {
        const uint32_t nodes = format::PathNodes(head);
        if (nodes == 0 || n != size_t{nodes} + 1) break;
        uint32_t its_slot = format::PathFirst(head);
        uint32_t parent = format::PathParent(head);
        if (parent == t.last_node) {
          byte |= kParentIsLast;
        } else {
          Append(&columns_[kNodeParents], ZigZag(int64_t{t.last_node} - parent));
        }
        if (its_slot == t.last_node + 1) {
          byte |= kSlotIsNext;
        } else {
          Append(&columns_[kNodeSlots], its_slot);
        }
        if (nodes == 1) {
          byte |= kOneNode;
        } else {
          Append(&columns_[kNodePcs], nodes);
        }
        for (uint32_t node = 1; node <= nodes; ++node, parent = its_slot++) {
          const uint64_t pc = words[i + node];
          if (pc == t.GuessedPc(parent)) {
            Append(&columns_[kNodePcs], 0);
          } else {
            const auto [number, is_new] =
                t.number_of_pc.try_emplace(pc, static_cast<uint32_t>(t.pcs.size()));
            Append(&columns_[kNodePcs], is_new ? 1 : uint64_t{number->second} + 1);
            if (is_new) {
              t.pcs.push_back(pc);
              Append(&columns_[kNewPcs], ZigZag(Difference(pc, t.last_pc)));
              Append(&columns_[kNewPcs], format::NodeInstance(pc));
            }
          }
          t.Defined(its_slot, parent, pc);
        }
        done = true;
        break;
      }
      case EventKind::kTime:
        Append(&columns_[kTimes], (format::TicksOf(head) - t.last_ticks) & kTickMask);
        t.last_ticks = format::TicksOf(head);
        done = true;
        break;
      case EventKind::kWideAlloc:
      case EventKind::kExtended:
      case EventKind::kInvalid:
        break;
    }
    if (!done) {
      byte = kLiteral;
      n = std::min(n, kLongestLiteral);
      Append(&columns_[kWords], n);
      const auto* bytes = reinterpret_cast<const uint8_t*>(words.data() + i);
      columns_[kWords].insert(columns_[kWords].end(), bytes, bytes + n * sizeof(uint64_t));
    }
    columns_[kKinds].push_back(byte);
    i += n;
  }
}

bool EventColumns::Decode(std::span<uint64_t> words) {
  if (tables_ == nullptr) tables_ = std::make_unique<Tables>();
  Tables& t = *tables_;
  t.Reset();
  ColumnReader slots(columns_[kSlots]), sizes(columns_[kSizes]), details(columns_[kDetails]),
      addresses(columns_[kAddresses]), ages(columns_[kAges]), freed(columns_[kFreed]),
      node_parents(columns_[kNodeParents]), node_slots(columns_[kNodeSlots]),
      node_pcs(columns_[kNodePcs]), new_pcs(columns_[kNewPcs]), times(columns_[kTimes]),
      literals(columns_[kWords]);

  const auto slot = [&](uint8_t byte) {
    uint32_t& guess = t.SlotBehind(t.last_slot);
    if ((byte & kSlotGuessed) == 0) {
      const uint64_t value = slots.Number();
      guess = value == 0 ? t.last_node : static_cast<uint32_t>(value - 1);
    }
    return t.last_slot = guess;
  };

  stamps_.clear();
  bool all_events = true;
  uint32_t events = 0;  // since the last stamp
  uint64_t* out = words.data();
  uint64_t* const end = out + words.size();
  const uint64_t* const last = words.empty() ? out : end - 1;
  const auto stamp = [&](const uint64_t* at) {
    stamps_.push_back({static_cast<uint32_t>(at - words.data()), events});
    events = 0;
  };
  for (const uint8_t byte : columns_[kKinds]) {
    // Two words are what any event but a literal needs at most.
    if (out >= last && (out == end || (byte & 15) != kLiteral)) [[unlikely]] {
      const auto kind = static_cast<EventKind>(byte & 15);
      const bool one_word = kind == EventKind::kTime ||
                            ((kind == EventKind::kFree || kind == EventKind::kReallocIntent) &&
                             (byte & kWithStack) == 0);
      if (out == end || !one_word) return false;
    }
    switch (static_cast<EventKind>(byte & 15)) {
      case EventKind::kMalloc:
      case EventKind::kCalloc:
      case EventKind::kRealloc: {
        const auto kind = static_cast<EventKind>(byte & 15);
        const uint32_t its_slot = slot(byte);
        uint32_t& size = t.SizeOf(its_slot);
        if ((byte & kSizeGuessed) == 0) size = static_cast<uint32_t>(sizes.Number());
        const uint32_t detail = (byte & kDetailGuessed) != 0
                                    ? GuessedDetail(size, t.arena)
                                    : static_cast<uint32_t>(details.Number()) & 0xfff;
        FreeList& list = t.free_lists[ClassOf(Usable(size, detail))];
        uint64_t address;
        if ((byte & kAddressGuessed) != 0) {
          if (kind == EventKind::kRealloc) {
            address = t.last_freed;
            t.FreedAgainAllocated();
          } else {
            if (list.size() == 0) return false;
            address = list.At(1);
            list.Take(1);
          }
        } else if (const uint64_t packed = addresses.Number(); (packed & 1) != 0) {
          const uint64_t at = packed >> 1;
          if (at == 0 || at > list.size()) return false;
          address = list.At(static_cast<uint32_t>(at));
          list.Take(static_cast<uint32_t>(at));
        } else {
          address = UnpackDifference(packed >> 1, t.last_end);
        }
        out[0] = format::Head(kind, address, detail);
        out[1] = size | uint64_t{its_slot} << 32;
        out += 2;
        ++events;
        t.Allocated(address, size, detail);
        break;
      }
      case EventKind::kFree:
      case EventKind::kReallocIntent: {
        const Tables::Allocation* block = nullptr;
        uint64_t address;
        if ((byte & kOfBefore) == 0) {
          const uint64_t age = ages.Number();
          if (age == 0 || age > t.allocations.size()) return false;
          block = &t.allocations[t.allocations.size() - age];
          address = block->address;
        } else {
          address = UnpackDifference(freed.Number(), t.last_freed);
        }
        t.Freed(block, address);
        const bool with_stack = (byte & kWithStack) != 0;
        *out++ = format::Head(static_cast<EventKind>(byte & 15), address, with_stack);
        if (with_stack) *out++ = slot(byte);
        ++events;
        break;
      }
      case EventKind::kPath: {
        uint32_t parent = (byte & kParentIsLast) != 0
                              ? t.last_node & format::kMaxSlot
                              : static_cast<uint32_t>(t.last_node - static_cast<uint64_t>(UnZigZag(
                                                                        node_parents.Number()))) &
                                    format::kMaxSlot;
        uint32_t its_slot = ((byte & kSlotIsNext) != 0 ? t.last_node + 1
                                                       : static_cast<uint32_t>(node_slots.Number())) &
                            format::kMaxSlot;
        const uint64_t nodes = (byte & kOneNode) != 0 ? 1 : node_pcs.Number();
        if (nodes == 0 || nodes > format::kMaxPathNodes ||
            nodes + 1 > static_cast<size_t>(end - out)) {
          return false;
        }
        *out++ = format::PathHead(parent, its_slot, static_cast<uint32_t>(nodes));
        for (uint64_t node = 0; node < nodes; ++node, parent = its_slot++) {
          uint64_t pc = t.GuessedPc(parent);
          if (const uint64_t number = node_pcs.Number(); number == 1) {
            const auto difference = static_cast<uint64_t>(UnZigZag(new_pcs.Number()));
            pc = (t.last_pc + difference) & format::kAddressMask;
            pc |= new_pcs.Number() << 48;
            t.pcs.push_back(pc);
          } else if (number != 0) {
            if (number > t.pcs.size()) return false;
            pc = t.pcs[number - 1];
          }
          *out++ = pc;
          t.Defined(its_slot, parent, pc);
        }
        break;
      }
      case EventKind::kTime:
        t.last_ticks = (t.last_ticks + times.Number()) & kTickMask;
        stamp(out);
        *out++ = format::TimeWord(t.last_ticks);
        break;
      case static_cast<EventKind>(kLiteral): {
        const uint64_t n = literals.Number();
        if (n == 0 || n > static_cast<size_t>(end - out) ||
            !literals.Bytes(out, n * sizeof(uint64_t))) {
          return false;
        }
        for (uint64_t i = 0; i < n;) {
          const uint32_t of_event = WordsOf(out[i]);
          all_events &= of_event != 0 && of_event <= n - i;
          if (!all_events) break;
          if (format::KindOf(out[i]) == EventKind::kTime) {
            stamp(out + i);
          } else {
            events += TakesTime(out[i]);
          }
          i += of_event;
        }
        out += n;
        break;
      }
      default:
        return false;
    }
  }
  for (const ColumnReader* reader :
       {&slots, &sizes, &details, &addresses, &ages, &freed, &node_parents, &node_slots, &node_pcs,
        &new_pcs, &times, &literals}) {
    if (!reader->ok() || !reader->at_end()) return false;
  }
  stamp(out);
  if (!all_events) stamps_.clear();
  return out == end;
}

}  // namespace memtrace::report
