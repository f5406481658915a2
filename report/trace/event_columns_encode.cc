// EventColumns::Encode(): the coder's half of event_columns.h, for whoever writes a packed
// trace (block_writer.h). The decoder's half is event_columns.cc; both make the same
// guesses, by event_tables.h.

#include <algorithm>

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

void EventColumns::Encode(std::span<const uint64_t> words) {
  if (tables_ == nullptr) tables_ = std::make_unique<Tables>();
  Tables& t = *tables_;
  t.Reset(words.size());
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
        const uint64_t usable = Usable(size, detail);
        FreeList& list = t.free_lists[ClassOf(usable)];
        if (kind == EventKind::kRealloc && address == t.last_freed.address()) {
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
        t.FoundAt(address) = static_cast<uint32_t>(t.allocation_count);
        t.Allocated(address, usable);
        t.arena = detail & format::kOtherArena;
        done = true;
        break;
      }
      case EventKind::kFree:
      case EventKind::kReallocIntent: {
        const bool with_stack = n == 2;
        if (n > 2 || detail != with_stack || (with_stack && words[i + 1] >> 32 != 0)) break;
        if (const size_t found = t.Find(address); found != SIZE_MAX) {
          Append(&columns_[kAges], t.allocation_count - found);
          t.Freed(t.allocations[found]);
        } else {
          byte |= kOfBefore;
          Append(&columns_[kFreed], PackDifference(address, t.last_freed.address()));
          t.last_freed.set_address(address);
        }
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
          Append(&columns_[kNodeParents], format::ZigZag(uint64_t{t.last_node} - parent));
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
              const auto difference = static_cast<uint64_t>(Difference(pc, t.last_pc));
              Append(&columns_[kNewPcs], format::ZigZag(difference));
              Append(&columns_[kNewPcs], format::NodeInstance(pc));
            }
          }
          t.Defined(its_slot, parent, pc);
        }
        done = true;
        break;
      }
      case EventKind::kTime:
        Append(&columns_[kTimes], (format::TicksOf(head) - t.last_ticks) & format::kTickMask);
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

}  // namespace memtrace::report
