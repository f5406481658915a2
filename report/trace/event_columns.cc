#include "report/trace/event_columns.h"

#include <cstring>
#include <iterator>

#include "format/event_words.h"
#include "format/varint.h"
#include "report/trace/event_block.h"
#include "report/trace/event_tables.h"

namespace memtrace::report {

using format::EventKind;

namespace {

// What stands behind a column while it is decoded: with it no number of one byte or two begins in
// the column and ends behind.
constexpr uint8_t kEndMarks[] = {0xff, 0xff};

// Reads one column, behind which are kEndMarks; past its end everything is 0 and ok() no more.
class ColumnReader {
 public:
  explicit ColumnReader(const std::vector<uint8_t>& column)
      : next_(column.data()), end_(column.data() + column.size() - std::size(kEndMarks)) {}

  uint64_t Number() {
    const uint8_t byte = *next_;
    if (byte < 0x80) [[likely]] {
      ++next_;
      return byte;
    }
    if (const uint8_t second = next_[1]; second < 0x80) [[likely]] {
      next_ += 2;
      return (byte & 0x7f) | uint32_t{second} << 7;
    }
    return LongNumber();
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
  uint64_t LongNumber() {
    uint64_t value;
    const uint8_t* const after =
        next_ == end_ ? nullptr : format::GetVarint(next_, end_, &value);
    if (after == nullptr) {
      next_ = end_;
      ok_ = false;
      return 0;
    }
    next_ = after;
    return value;
  }

  const uint8_t* next_;
  const uint8_t* const end_;
  bool ok_ = true;
};

}  // namespace

EventColumns::EventColumns() = default;
EventColumns::~EventColumns() = default;

bool EventColumns::Decode(std::span<uint64_t> words) {
  for (std::vector<uint8_t>& column : columns_) {
    column.insert(column.end(), std::begin(kEndMarks), std::end(kEndMarks));
  }
  const bool decoded = DecodeMarked(words);
  for (std::vector<uint8_t>& column : columns_) column.resize(column.size() - std::size(kEndMarks));
  return decoded;
}

bool EventColumns::DecodeMarked(std::span<uint64_t> words) {
  if (tables_ == nullptr) tables_ = std::make_unique<Tables>();
  Tables& t = *tables_;
  t.Reset(words.size());
  ColumnReader slots(columns_[kSlots]), sizes(columns_[kSizes]), details(columns_[kDetails]),
      addresses(columns_[kAddresses]), ages(columns_[kAges]), freed(columns_[kFreed]),
      node_parents(columns_[kNodeParents]), node_slots(columns_[kNodeSlots]),
      node_pcs(columns_[kNodePcs]), new_pcs(columns_[kNewPcs]), times(columns_[kTimes]),
      literals(columns_[kWords]);

  uint32_t last_slot = 0;
  const auto slot = [&](uint8_t byte) {
    uint32_t& guess = t.SlotBehind(last_slot);
    if ((byte & kSlotGuessed) == 0) {
      const uint64_t value = slots.Number();
      guess = value == 0 ? t.last_node : static_cast<uint32_t>(value - 1);
    }
    return last_slot = guess;
  };

  stamps_.clear();
  bool all_events = true;
  uint64_t* out = words.data();
  uint64_t* const end = out + words.size();
  const uint64_t* const last = words.empty() ? out : end - 1;
  const uint8_t* byte_at = columns_[kKinds].data();
  const uint8_t* const bytes_end = byte_at + columns_[kKinds].size() - std::size(kEndMarks);
  // Most bytes are an event that takes time. Where the first behind the last stamp stands, and how
  // many more of these events there are since than bytes, modulo 2^32.
  const uint8_t* behind_stamp = byte_at;
  uint32_t more_events = 0;
  const auto stamp = [&](const uint64_t* at, const uint8_t* behind) {
    const auto bytes = static_cast<uint32_t>(byte_at - behind_stamp);
    stamps_.push_back({static_cast<uint32_t>(at - words.data()), bytes + more_events});
    behind_stamp = behind;
    more_events = 0;
  };
  // Frees the block that was allocated so many allocations ago, and gives its address.
  constexpr uint64_t kNoAddress = UINT64_MAX;  // there is none
  const auto free_of_age = [&](uint64_t age) -> uint64_t {
    if (age - 1 >= t.allocation_count) [[unlikely]] return kNoAddress;
    const Tables::Allocation block = t.allocations[t.allocation_count - age];
    t.Freed(block);
    return block.address();
  };
  for (; byte_at != bytes_end; ++byte_at) {
    const uint8_t byte = *byte_at;
    // Two kinds of bytes are most of all.
    if (byte == static_cast<uint8_t>(EventKind::kFree)) {
      const uint64_t address = free_of_age(ages.Number());
      if (out == end || address == kNoAddress) [[unlikely]] return false;
      *out++ = format::Head(EventKind::kFree, address);
      continue;
    }
    if (out >= last && (out == end || (byte & 15) != kLiteral)) [[unlikely]] {
      // Two words are what any event but a literal needs at most.
      const auto kind = static_cast<EventKind>(byte & 15);
      const bool one_word = kind == EventKind::kTime ||
                            ((kind == EventKind::kFree || kind == EventKind::kReallocIntent) &&
                             (byte & kWithStack) == 0);
      if (out == end || !one_word) return false;
    }
    const auto kind = static_cast<EventKind>(byte & 15);
    if (format::IsShortAlloc(kind)) {
      const uint32_t its_slot = slot(byte);
      uint32_t& guessed_size = t.SizeOf(its_slot);
      if ((byte & kSizeGuessed) == 0) guessed_size = static_cast<uint32_t>(sizes.Number());
      const uint32_t size = guessed_size;
      uint32_t detail;
      uint64_t usable;
      if ((byte & kDetailGuessed) != 0) [[likely]] {
        usable = GuessedUsable(size);  // of which Usable() would make the same
        detail = GuessedDetail(size, t.arena);
      } else {
        detail = static_cast<uint32_t>(details.Number()) & 0xfff;
        usable = Usable(size, detail);
        t.arena = detail & format::kOtherArena;
      }
      FreeList& list = t.free_lists[ClassOf(usable)];
      uint64_t address;
      if ((byte & kAddressGuessed) != 0) {
        if (kind == EventKind::kRealloc) {
          address = t.last_freed.address();
          t.FreedAgainAllocated();
        } else {
          if (list.size() == 0) return false;
          address = list.TakeLatest();
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
      t.Allocated(address, usable);
      continue;
    }
    switch (kind) {
      case EventKind::kFree:
      case EventKind::kReallocIntent: {
        uint64_t address;
        if ((byte & kOfBefore) == 0) {
          address = free_of_age(ages.Number());
          if (address == kNoAddress) return false;
        } else {
          address = UnpackDifference(freed.Number(), t.last_freed.address());
          t.last_freed.set_address(address);
        }
        const bool with_stack = (byte & kWithStack) != 0;
        *out++ = format::Head(kind, address, with_stack);
        if (with_stack) *out++ = slot(byte);
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
        --more_events;
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
        stamp(out, byte_at + 1);
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
            stamp(out + i, byte_at);
          } else {
            more_events += TakesTime(out[i]);
          }
          i += of_event;
        }
        --more_events;  // the byte
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
  stamp(out, byte_at);
  if (!all_events) stamps_.clear();
  return out == end;
}

}  // namespace memtrace::report
