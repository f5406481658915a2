// A HeapModel's events whose order is not known: blocks in the shadow of others, debts, frees that
// the trace lacks. heap_model.h has the rules.

#include <optional>

#include "report/model/heap_model.h"

namespace memtrace::report {

// An alloc of a live address that had to be taken: the caller overwrites `block`.
void HeapModel::Collide(size_t stream, const HeldBlock& block, EventTime when) {
  const uint64_t address = block.address();
  const auto old = shadows_.find(address);
  if (old != shadows_.end()) {
    // One in limbo will be freed by its thread; here and now, for there is no room.
    if (!old->second.block.has(HeldBlock::kLimbo)) CountUnseenFree(address, when.time);
    CountFree(old->second.block, old->second.block.thread, when.time, false);
    shadows_.erase(old);
  }
  const bool limbo = block.has(HeldBlock::kLimbo);  // then its own thread will free it
  // An older one was freed in between, though the trace does not say so.
  const bool recent = block.time_ns + kReorderNs >= when.low;
  if (limbo || (!options_.exact && block.thread != stream && recent)) {
    const bool surely_first =
        options_.exact || block.time_ns + options_.slack_ns < when.low;
    shadows_[address] = {block, when.high, surely_first};
  } else {
    CountUnseenFree(address, when.time);
    CountFree(block, block.thread, when.time, false);
  }
}

// A free of an address with a block in the shadow of `block`. False: no such address.
bool HeapModel::FreeShadowed(size_t stream, HeldBlock* block, EventTime when) {
  const uint64_t address = block->address();
  const auto at = shadows_.find(address);
  if (at == shadows_.end()) return false;
  const Shadow shadow = at->second;
  if (shadow.block.has(HeldBlock::kLimbo)) return false;
  shadows_.erase(at);
  const bool of_second = block->thread == stream;
  const bool too_late = shadow.surely_first && shadow.second_high != UINT64_MAX &&
                        when.low > shadow.second_high + options_.slack_ns;
  if (!of_second && !too_late) {
    CountFree(shadow.block, stream, when.time, false);
    return true;
  }
  CountFree(*block, stream, when.time, false);
  if (too_late) {
    CountUnseenFree(address, when.time);
    CountFree(shadow.block, shadow.block.thread, when.time, false);
    table_.Erase(block);
  } else {
    LiveTable::Replace(block, shadow.block);
  }
  return true;
}

void HeapModel::AddDebt(size_t stream, uint64_t address, EventTime when) {
  const Debt debt{stream, when.time, when.high};
  if (options_.exact) return WriteOff(address, debt);
  doubts_.AddDebt(address, debt, when.low,
                  [this](uint64_t owed, const Debt& unpaid) { WriteOff(owed, unpaid); });
}

// `block` was allocated just now. Was it freed before that?
void HeapModel::PayDebt(size_t stream, HeldBlock* block, EventTime when) {
  const std::optional<Debt> debt = doubts_.TakeDebt(block->address());
  if (!debt.has_value()) return;
  // The order of events of one thread is known.
  const bool may_be_earlier =
      debt->stream != stream &&
      (debt->high == UINT64_MAX || when.low <= debt->high + options_.slack_ns);
  if (!may_be_earlier) return WriteOff(block->address(), *debt);
  // It may have been too early again: for the next block at this address.
  doubts_.RememberAlso(block->address(), *debt);
  CountFree(*block, debt->stream, debt->time, false);
  const auto shadow = shadows_.find(block->address());
  if (shadow != shadows_.end()) {
    LiveTable::Replace(block, shadow->second.block);
    shadows_.erase(shadow);
  } else {
    table_.Erase(block);
  }
}

// Nobody can have allocated what it freed.
void HeapModel::WriteOff(uint64_t address, const Debt& debt) {
  if (!InRange(debt.time) || !threads_[debt.stream].selected) return;
  if (doubts_.TakeUnseen(address, debt.time)) {
    --unseen_frees_;
    ++unordered_;
    return;
  }
  ++unknown_frees_;
  if (first_unknown_frees_.size() < (options_.forked ? kMostOfForkedChild : kMostUnknownFrees)) {
    first_unknown_frees_.push_back({address, debt.stream});
  }
  if (threads_.size() > 1 && !options_.of_lines) doubts_.KeepWrittenOff(address, debt.time);
}

// A block at `address` was not freed, as far as the order goes that was found.
void HeapModel::CountUnseenFree(uint64_t address, uint64_t time) {
  if (!InRange(time)) return;
  if (doubts_.TakeWrittenOff(address, time)) {
    --unknown_frees_;
    std::erase_if(first_unknown_frees_,
                  [&](const UnknownFree& free) { return free.address == address; });
    ++unordered_;
    return;
  }
  ++unseen_frees_;
  if (threads_.size() > 1 && !options_.of_lines) doubts_.KeepUnseen(address, time);
}

HeldBlock* HeapModel::FindInLimbo(uint64_t address) {
  HeldBlock* block = table_.Find(address);
  if (block != nullptr && block->has(HeldBlock::kLimbo)) return block;
  const auto shadow = shadows_.find(address);
  if (shadow == shadows_.end() || !shadow->second.block.has(HeldBlock::kLimbo)) return nullptr;
  return &shadow->second.block;
}

}  // namespace memtrace::report
