// EveryWay: the stack of one moment by every way the tracer has to it, which must agree:
// the plain walk, the join with the last stack, the memo of whole stacks.
//
// As in the tracer, one object belongs to one thread, and the memo's answer counts only
// where its read-set matches. Throws std::logic_error on a difference.

#ifndef MEMTRACE_TESTS_UNWIND_EVERY_WAY_H_
#define MEMTRACE_TESTS_UNWIND_EVERY_WAY_H_

#include <stdexcept>
#include <string>
#include <vector>

#include "preload/unwind/stack_memo.h"
#include "preload/unwind/stack_unwinder.h"

namespace memtrace::unwind {

struct CapturedStack {
  std::vector<uint64_t> keys;  // innermost first
  format::StackMarker marker = format::StackMarker::kNone;
  uintptr_t sp = 0;  // of the caller
  bool operator==(const CapturedStack& other) const {
    return keys == other.keys && marker == other.marker;
  }
};

class EveryWay {
 public:
  EveryWay() { memo_.Init(memo_memory_.data(), kMemoEntries); }
  EveryWay(const EveryWay&) = delete;
  EveryWay& operator=(const EveryWay&) = delete;

  CapturedStack Capture(const CallSite& site) {
    const StackMemo::Entry* const known = memo_.Find(site, unwinder_.primary_stack());
    const CapturedStack walked = Walked(site);
    if (known != nullptr) {
      ++memo_hits_;
      if (!(named_[known->stack] == walked)) throw std::logic_error("the memo is wrong");
    }
    if (unwinder_.Join(site, &join_) != StackJoin::Outcome::kRecorded) {
      ++give_ups_;
      return walked;
    }
    CapturedStack joined;
    for (size_t i = join_.size(); i > 0; --i) joined.keys.push_back(join_.key(i - 1));
    joined.marker = join_.marker();
    if (!(joined == walked)) throw std::logic_error("the join is wrong");
    joined_frames_ += join_.shared();
    if (known == nullptr) {
      memo_.Learn(site, join_, named_.size());
      named_.push_back(walked);
    }
    return walked;
  }

  size_t memo_hits() const { return memo_hits_; }
  size_t joined_frames() const { return joined_frames_; }
  size_t give_ups() const { return give_ups_; }
  StackUnwinder& unwinder() { return unwinder_; }

 private:
  static constexpr size_t kMemoEntries = 256;

  CapturedStack Walked(const CallSite& site) {
    CapturedStack stack;
    stack.keys.resize(kMaxFrames);
    const UnwindResult result = unwinder_.Capture(site, stack.keys.data(), kMaxFrames);
    stack.keys.resize(result.frames);
    stack.marker = result.marker;
    stack.sp = site.cfa;
    return stack;
  }

  StackUnwinder unwinder_;
  StackJoin join_;
  StackMemo memo_;
  std::vector<StackMemo::Entry> memo_memory_ = std::vector<StackMemo::Entry>(kMemoEntries);
  std::vector<CapturedStack> named_;
  size_t memo_hits_ = 0;
  size_t joined_frames_ = 0;
  size_t give_ups_ = 0;
};

// Of the function it is expanded in, as seen from its caller.
#define MEMTRACE_CALLER_SITE()                                        \
  ::memtrace::unwind::CallSite {                                      \
    reinterpret_cast<uintptr_t>(__builtin_return_address(0)),         \
        reinterpret_cast<uintptr_t>(__builtin_frame_address(0)) + 16, \
        *static_cast<const uintptr_t*>(__builtin_frame_address(0))    \
  }

}  // namespace memtrace::unwind

#endif  // MEMTRACE_TESTS_UNWIND_EVERY_WAY_H_
