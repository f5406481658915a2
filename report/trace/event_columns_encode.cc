// EventColumns::Encode(): the coder's half of event_columns.h, for whoever writes a packed
// trace (block_writer.h). The decoder's half is event_columns.cc; both make the same
// guesses, by event_tables.h.

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "format/event_words.h"
#include "format/varint.h"
#include "report/trace/event_block.h"
#include "report/trace/event_columns.h"
#include "report/trace/event_tables.h"

namespace memtrace::report {

using format::EventKind;

namespace {

// Words of one literal, at most: longer ones are several.
constexpr size_t kLongestLiteral = 1 << 16;

void Append(std::vector<uint8_t>* column, uint64_t value) {
  if (value < 0x80) {
    column->push_back(static_cast<uint8_t>(value));
    return;
  }
  uint8_t buffer[format::kMaxVarintBytes];
  column->insert(column->end(), buffer, format::PutVarint(buffer, value));
}

}  // namespace

// The coder at work on one block. Each kind of event has a function, which adds what is not guessed
// to the columns, and to `byte` which guesses were right. False: the event is not as it should be,
// and nothing was done.
class EventColumns::Coder {
 public:
  Coder(Tables& tables, std::array<std::vector<uint8_t>, kColumns>& columns)
      : t_(tables), columns_(columns) {}

  // An event of `n` words.
  bool Event(const uint64_t* words, size_t n, uint8_t* byte) {
    switch (format::KindOf(words[0])) {
      case EventKind::kMalloc:
      case EventKind::kCalloc:
      case EventKind::kRealloc:
        return n == 2 && Alloc(words, byte);
      case EventKind::kFree:
      case EventKind::kReallocIntent:
        return End(words, n, byte);
      case EventKind::kPath:
        return Path(words, n, byte);
      case EventKind::kTime: {
        const uint64_t ticks = format::TicksOf(words[0]);
        Put(kTimes, (ticks - t_.last_ticks) & format::kTickMask);
        t_.last_ticks = ticks;
        return true;
      }
      case EventKind::kWideAlloc:
      case EventKind::kExtended:
      case EventKind::kInvalid:
        break;
    }
    return false;
  }

  // Words as they are.
  void Literal(const uint64_t* words, size_t n) {
    Put(kWords, n);
    const auto* bytes = reinterpret_cast<const uint8_t*>(words);
    columns_[kWords].insert(columns_[kWords].end(), bytes, bytes + n * sizeof(uint64_t));
  }

 private:
  void Put(Column column, uint64_t value) { Append(&columns_[column], value); }

  void Slot(uint32_t value, uint8_t* byte) {
    uint32_t& guess = t_.SlotBehind(t_.last_slot);
    if (guess == value) {
      *byte |= kSlotGuessed;
    } else {
      Put(kSlots, value == t_.last_node ? 0 : uint64_t{value} + 1);
    }
    guess = value;
    t_.last_slot = value;
  }

  bool Alloc(const uint64_t* words, uint8_t* byte) {
    const uint32_t detail = format::DetailOf(words[0]);
    const auto size = static_cast<uint32_t>(words[1]);
    const auto its_slot = static_cast<uint32_t>(words[1] >> 32);
    Slot(its_slot, byte);
    uint32_t& guessed_size = t_.SizeOf(its_slot);
    if (guessed_size == size) {
      *byte |= kSizeGuessed;
    } else {
      Put(kSizes, guessed_size = size);
    }
    if (GuessedDetail(size, t_.arena) == detail) {
      *byte |= kDetailGuessed;
    } else {
      Put(kDetails, detail);
    }
    const uint64_t usable = Usable(size, detail);
    const uint64_t address = format::AddressOf(words[0]);
    if (GuessAddress(address, usable, format::KindOf(words[0]) == EventKind::kRealloc))
      *byte |= kAddressGuessed;
    t_.FoundAt(address) = static_cast<uint32_t>(t_.allocation_count);
    t_.Allocated(address, usable);
    t_.arena = detail & format::kOtherArena;
    return true;
  }

  // Of an allocation. False: the column has it.
  bool GuessAddress(uint64_t address, uint64_t usable, bool realloc) {
    if (realloc && address == t_.last_freed.address()) {
      t_.FreedAgainAllocated();
      return true;
    }
    FreeList& list = t_.free_lists[ClassOf(usable)];
    const uint32_t at = list.Find(address);
    if (at != 0) list.Take(at);
    if (at == 1 && !realloc) return true;
    Put(kAddresses, at != 0 ? at << 1 | 1 : PackDifference(address, t_.last_end) << 1);
    return false;
  }

  bool End(const uint64_t* words, size_t n, uint8_t* byte) {
    const bool with_stack = n == 2;
    if (n > 2 || format::DetailOf(words[0]) != with_stack || (with_stack && words[1] >> 32 != 0))
      return false;
    const uint64_t address = format::AddressOf(words[0]);
    if (const size_t found = t_.Find(address); found != SIZE_MAX) {
      Put(kAges, t_.allocation_count - found);
      t_.Freed(t_.allocations[found]);
    } else {
      *byte |= kOfBefore;
      Put(kFreed, PackDifference(address, t_.last_freed.address()));
      t_.last_freed.set_address(address);
    }
    if (with_stack) {
      *byte |= kWithStack;
      Slot(static_cast<uint32_t>(words[1]), byte);
    }
    return true;
  }

  bool Path(const uint64_t* words, size_t n, uint8_t* byte) {
    const uint32_t nodes = format::PathNodes(words[0]);
    if (nodes == 0 || n != size_t{nodes} + 1) return false;
    uint32_t its_slot = format::PathFirst(words[0]);
    uint32_t parent = format::PathParent(words[0]);
    if (parent == t_.last_node) {
      *byte |= kParentIsLast;
    } else {
      Put(kNodeParents, format::ZigZag(uint64_t{t_.last_node} - parent));
    }
    if (its_slot == t_.last_node + 1) {
      *byte |= kSlotIsNext;
    } else {
      Put(kNodeSlots, its_slot);
    }
    if (nodes == 1) {
      *byte |= kOneNode;
    } else {
      Put(kNodePcs, nodes);
    }
    for (uint32_t node = 1; node <= nodes; ++node, parent = its_slot++) {
      PcOf(words[node], parent);
      t_.Defined(its_slot, parent, words[node]);
    }
    return true;
  }

  void PcOf(uint64_t pc, uint32_t parent) {
    if (pc == t_.GuessedPc(parent)) return Put(kNodePcs, 0);
    const auto [number, is_new] =
        t_.number_of_pc.try_emplace(pc, static_cast<uint32_t>(t_.pcs.size()));
    Put(kNodePcs, is_new ? 1 : uint64_t{number->second} + 1);
    if (!is_new) return;
    t_.pcs.push_back(pc);
    Put(kNewPcs, format::ZigZag(static_cast<uint64_t>(Difference(pc, t_.last_pc))));
    Put(kNewPcs, format::NodeInstance(pc));
  }

  Tables& t_;
  std::array<std::vector<uint8_t>, kColumns>& columns_;
};

void EventColumns::Encode(std::span<const uint64_t> words) {
  if (tables_ == nullptr) tables_ = std::make_unique<Tables>();
  tables_->Reset(words.size());
  tables_->number_of_pc.clear();
  tables_->found.resize(size_t{1} << Tables::kFindBits);
  for (auto& column : columns_) column.clear();
  Coder coder(*tables_, columns_);
  for (size_t i = 0; i < words.size();) {
    const uint64_t head = words[i];
    const size_t left = words.size() - i;
    size_t n = format::EventWords(head);
    if (n == 0 || n > left) n = left;
    auto byte = static_cast<uint8_t>(format::KindOf(head));
    if (!coder.Event(&words[i], n, &byte)) {
      byte = kLiteral;
      n = std::min(n, kLongestLiteral);
      coder.Literal(&words[i], n);
    }
    columns_[kKinds].push_back(byte);
    i += n;
  }
}

}  // namespace memtrace::report
