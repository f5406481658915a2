#include "preload/cross_check.h"

#include <cerrno>
#include <new>

#include "preload/allowed_calls.h"
#include "preload/append_records.h"
#include "preload/clock.h"
#include "preload/own_memory.h"
#include "preload/process.h"
#include "preload/raw_log.h"
#include "preload/signals_blocked.h"
#include "preload/sys.h"
#include "preload/thread_spool.h"

namespace memtrace {
namespace {

using format::CrossCheckEnd;
using format::CrossCheckLayer;
using format::CrossCheckResult;
using format::StackMarker;

// Stacks that are told in full, of each result that is worth it.
constexpr size_t kMostTold = 16;
// The counters are in the trace at any end of the process, at most so many checks behind;
// the first of each result is told at once.
constexpr uint64_t kChecksToCounters = 1024;
// Frames told of each of the two stacks.
constexpr size_t kMostFramesTold = 200;

struct Results {
  std::atomic<bool> open{false};
  std::atomic<uint32_t> inside{0};  // threads in libunwind now
  std::atomic<uint64_t> checked[static_cast<size_t>(CrossCheckLayer::kGeneric) + 1];
  std::atomic<uint64_t> results[static_cast<size_t>(CrossCheckResult::kNotUnwound) + 1];
  // The differences that were told, by result and by the place where the stacks
  // part: each place once.
  std::atomic<uint64_t> told[static_cast<size_t>(CrossCheckResult::kNotUnwound) + 1][kMostTold];
};
constinit Results g_results;

void Note(std::string_view what, std::string_view why) {
  Text<256> text;
  text << what << why;
  AppendRecords<512>([&](format::RecordEncoder& out) {
    out.Begin(format::RecordTag::kNote);
    out.Bytes(text.view());
    out.End();
  });
}

// Is this the first at its place, and is there room for it?
bool IsNews(CrossCheckResult result, uint64_t place) {
  if (place == 0) place = 1;
  for (std::atomic<uint64_t>& told : g_results.told[static_cast<size_t>(result)]) {
    uint64_t found = 0;
    if (told.compare_exchange_strong(found, place, std::memory_order_relaxed)) return true;
    if (found == place) return false;
  }
  return false;
}

CrossCheckLayer LayerOf(const unwind::UnwindCounters& before, const unwind::UnwindCounters& now) {
  if (now.memo_hits != before.memo_hits) return CrossCheckLayer::kMemo;
  if (now.generic != before.generic) return CrossCheckLayer::kGeneric;
  if (now.walked != before.walked) return CrossCheckLayer::kWalk;
  return CrossCheckLayer::kJoin;
}

// The key that a frame of libunwind's should have, without the instance.
uint64_t ExpectedPc(const OracleFrame& frame, bool context_start) {
  return frame.pc + (frame.interrupted || frame.trampoline || context_start);
}

}  // namespace

void OpenCrossCheck(bool (*may_say)()) {
  const char* why = "MEMTRACE_STACKS=off leaves none";
  if (g_process.config.stacks) {
    const OwnCalls section;
    const int saved_errno = errno;
    why = OpenLibunwind();
    errno = saved_errno;
    if (why == nullptr) {
      g_results.open.store(true, std::memory_order_release);
      return;
    }
  }
  if (may_say()) RawLog("stacks are not cross-checked: ", why);
  Note("stacks are not cross-checked: ", why);
}

void RestartCrossCheck(bool forked) {
  for (auto& count : g_results.checked) count.store(0, std::memory_order_relaxed);
  for (auto& count : g_results.results) count.store(0, std::memory_order_relaxed);
  for (auto& places : g_results.told) {
    for (auto& place : places) place.store(0, std::memory_order_relaxed);
  }
  if (forked && g_results.inside.exchange(0, std::memory_order_relaxed) != 0) {
    g_results.open.store(false, std::memory_order_relaxed);
    Note("stacks are not cross-checked: ",
         "when this process was forked, another thread was in libunwind");
  }
}

void WriteCrossCheckCounters() {
  if (g_process.config.cross_check == 0) return;
  AppendRecords<1024>([](format::RecordEncoder& out) {
    const auto checked = [](CrossCheckLayer layer) {
      return g_results.checked[static_cast<size_t>(layer)].load(std::memory_order_relaxed);
    };
    const auto result = [](CrossCheckResult which) {
      return g_results.results[static_cast<size_t>(which)].load(std::memory_order_relaxed);
    };
    uint64_t all = 0;
    for (const auto& count : g_results.checked) all += count.load(std::memory_order_relaxed);
    out.Counter("cross_checked", all);
    out.Counter("cross_checked_memo_hits", checked(CrossCheckLayer::kMemo));
    out.Counter("cross_checked_joined", checked(CrossCheckLayer::kJoin));
    out.Counter("cross_checked_walked", checked(CrossCheckLayer::kWalk));
    out.Counter("cross_checked_generic", checked(CrossCheckLayer::kGeneric));
    out.Counter("cross_check_differences", result(CrossCheckResult::kDifferent));
    out.Counter("cross_check_guessed_on", result(CrossCheckResult::kGuessedOn));
    out.Counter("cross_check_went_on", result(CrossCheckResult::kWentOn));
    out.Counter("cross_check_gave_up", result(CrossCheckResult::kGaveUp));
    out.Counter("cross_check_not_unwound", result(CrossCheckResult::kNotUnwound));
  });
}

CrossCheckResult CompareStacks(const uint64_t* keys, size_t frames, StackMarker marker,
                               const OracleStack& oracle, size_t* first_different) {
  const size_t common = frames < oracle.count ? frames : oracle.count;
  size_t& i = *first_different;
  for (i = 0; i < common; ++i) {
    const uintptr_t pc = unwind::PcOf(keys[i]);
    // The last frame of a context is its own function's, or what that would return to.
    const bool context_start = marker == StackMarker::kContextEnd && i + 1 == frames;
    if (pc != ExpectedPc(oracle.frames[i], false) &&
        !(context_start && pc == ExpectedPc(oracle.frames[i], true))) {
      return CrossCheckResult::kDifferent;
    }
  }
  if (oracle.count == 0) return CrossCheckResult::kNotUnwound;
  if (oracle.count < frames) {
    return oracle.end == CrossCheckEnd::kGaveUp ? CrossCheckResult::kGaveUp
                                            : CrossCheckResult::kDifferent;
  }
  if (oracle.count > frames) {
    switch (marker) {
      case StackMarker::kNone: return CrossCheckResult::kDifferent;
      // libunwind takes what lies above the first frame of a context for a frame.
      case StackMarker::kContextEnd:
      case StackMarker::kTruncated: return CrossCheckResult::kSame;
      default:
        return oracle.frames[frames].guessed ? CrossCheckResult::kGuessedOn
                                             : CrossCheckResult::kWentOn;
    }
  }
  const bool complete = marker == StackMarker::kNone;
  return complete && oracle.end == CrossCheckEnd::kGaveUp ? CrossCheckResult::kGaveUp
                                                      : CrossCheckResult::kSame;
}

CrossCheck* CrossCheck::Begin(ThreadState& state) {
  if (!g_results.open.load(std::memory_order_acquire)) return nullptr;
  CrossCheck* check = state.cross_check;
  if (check == nullptr) {
    void* memory = OwnMap(sizeof(CrossCheck), /*touch=*/false);
    if (memory == nullptr) return nullptr;
    check = state.cross_check = new (memory) CrossCheck;
    state.slots.Restart();  // what was defined before is defined again, and read
    check->first_held_ = state.slots.first_held();
  }
  // The largest stack's definitions stay in the ring until they are read.
  if (!state.ring.HasRoom(unwind::StackJoin::kMaxRecorded + 3)) SpoolThread(state);
  check->from_ = state.ring.next();
  check->before_ = state.unwinder.counters();
  return check;
}

void CrossCheck::Finish(ThreadState& state, const unwind::CallSite& site, uint32_t slot) {
  if (state.slots.first_held() != first_held_) {
    first_held_ = state.slots.first_held();
    written_.Forget();
  }
  if (!written_.Read(from_, state.ring.next())) state.slots.Restart();
  if (--until_next_ != 0) return;
  const OtherCalls calls;  // libunwind makes all kinds of them
  if (!calls) {
    until_next_ = 1;
    return;
  }
  until_next_ = g_process.config.cross_check;

  const CrossCheckLayer layer = LayerOf(before_, state.unwinder.counters());
  const WrittenStacks::Stack stack = written_.Find(slot, keys_, kMostFrames);
  Unwind(site);
  size_t at = 0;
  const CrossCheckResult result =
      stack.defined ? CompareStacks(keys_, stack.frames, stack.marker, oracle_, &at)
                    : CrossCheckResult::kDifferent;
  g_results.checked[static_cast<size_t>(layer)].fetch_add(1, std::memory_order_relaxed);
  const uint64_t results =
      g_results.results[static_cast<size_t>(result)].fetch_add(1, std::memory_order_relaxed);
  if (results % kChecksToCounters == 0) WriteCrossCheckCounters();
  if (result == CrossCheckResult::kSame) return;
  const uint64_t place = (at < stack.frames ? keys_[at] : static_cast<uint64_t>(stack.marker)) *
                             uint64_t{0x9e3779b97f4a7c15} +
                         (at < oracle_.count ? oracle_.frames[at].pc : 0);
  if (IsNews(result, place)) Tell(state, site, stack, layer, result, at);
}

// On the program's stack are only this frame and the registers; the rest is on ours.
[[gnu::noinline]] void CrossCheck::Unwind(const unwind::CallSite& site) {
  struct Job {
    CrossCheck* check;
    const unwind::CallSite* site;
    unwind::KeptRegisters registers;
  } job = {this, &site, unwind::CurrentRegisters()};
  const int saved_errno = errno;
  {
    const SignalsBlocked blocked;
    const OwnCalls section;
    oracle_.frames = frames_;
    oracle_.capacity = kMostFrames;
    g_results.inside.fetch_add(1);
    unwind::CallOnStack(
        stack_ + kStackBytes,
        [](void* data) {
          auto* job = static_cast<Job*>(data);
          UnwindByLibunwind(job->registers, *job->site, &job->check->pages_, &job->check->oracle_);
        },
        &job);
    g_results.inside.fetch_sub(1);
  }
  errno = saved_errno;
}

void CrossCheck::Tell(const ThreadState& state, const unwind::CallSite& site,
                      const WrittenStacks::Stack& stack, CrossCheckLayer layer,
                      CrossCheckResult result, size_t first_different) {
  const size_t ours = stack.frames < kMostFramesTold ? stack.frames : kMostFramesTold;
  const size_t theirs = oracle_.count < kMostFramesTold ? oracle_.count : kMostFramesTold;
  AppendBigRecords(32 << 10, [&](format::RecordEncoder& out) {
    out.Begin(format::RecordTag::kCrossCheck);
    out.Number(static_cast<uint64_t>(result));
    out.Number(state.serial);
    out.Number(g_clock.Now());
    out.Number(static_cast<uint64_t>(layer));
    out.Number(site.pc);
    out.Number(site.cfa);
    out.Number(first_different);
    out.Number(static_cast<uint64_t>(stack.marker));
    out.Number(static_cast<uint64_t>(oracle_.end));
    out.Number(static_cast<uint64_t>(-oracle_.error));
    out.Number(stack.frames);
    out.Number(oracle_.count);
    out.Number(ours);
    for (size_t i = 0; i < ours; ++i) {
      out.Number(unwind::PcOf(keys_[i]));
      out.Number(unwind::InstanceOf(keys_[i]));
    }
    out.Number(theirs);
    for (size_t i = 0; i < theirs; ++i) {
      const OracleFrame& frame = oracle_.frames[i];
      out.Number(ExpectedPc(frame, false));
      out.Number(frame.sp);
      out.Number(frame.guessed);
    }
    out.End();
  });
}

}  // namespace memtrace
