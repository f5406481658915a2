#include "report/trace/event_columns.h"

#include <cstring>

#include "format/event_words.h"
#include "format/varint.h"
#include "report/trace/event_block.h"
#include "report/trace/event_tables.h"

namespace memtrace::report {

using format::EventKind;

namespace {

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

}  // namespace

EventColumns::EventColumns() = default;
EventColumns::~EventColumns() = default;

bool EventColumns::Decode(std::span<uint64_t> words) {
  if (tables_ == nullptr) tables_ = std::make_unique<Tables>();
  Tables& t = *tables_;
  t.Reset(words.size());
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
        uint32_t detail;
        uint64_t usable;
        if ((byte & kDetailGuessed) != 0) [[likely]] {
          detail = GuessedDetail(size, t.arena);
          usable = GuessedUsable(size);  // of which Usable() would make the same
        } else {
          detail = static_cast<uint32_t>(details.Number()) & 0xfff;
          usable = Usable(size, detail);
          t.arena = detail & format::kOtherArena;
        }
        FreeList& list = t.free_lists[ClassOf(usable)];
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
        t.Allocated(address, usable);
        break;
      }
      case EventKind::kFree:
      case EventKind::kReallocIntent: {
        const Tables::Allocation* block = nullptr;
        uint64_t address;
        if ((byte & kOfBefore) == 0) {
          const uint64_t age = ages.Number();
          if (age == 0 || age > t.allocation_count) return false;
          block = &t.allocations[t.allocation_count - age];
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
                              : static_cast<uint32_t>(t.last_node -
                                                      format::UnZigZag(node_parents.Number())) &
                                    format::kMaxSlot;
        uint32_t its_slot =
            ((byte & kSlotIsNext) != 0 ? t.last_node + 1
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
            pc = (t.last_pc + format::UnZigZag(new_pcs.Number())) & format::kAddressMask;
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
        t.last_ticks = (t.last_ticks + times.Number()) & format::kTickMask;
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
