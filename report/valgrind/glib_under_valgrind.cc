#include "report/valgrind/glib_under_valgrind.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "report/base/path.h"
#include "report/names/frames_filter.h"
#include "report/names/glib_slices.h"
#include "report/valgrind/stack_key.h"

namespace memtrace::report::valgrind {
namespace {

using render::LossFrame;

// What GLib puts in front of a block or behind it at most, which it does not declare.
constexpr uint64_t kMostAround = 16;

bool IsOfGLib(const LossFrame& frame) {
  return absl::StartsWith(FileNameOf(frame.object), "libglib-2.0.so");
}
bool IsOfGObject(const LossFrame& frame) {
  return absl::StartsWith(FileNameOf(frame.object), "libgobject-2.0.so");
}

// Where the frame behind malloc and GLib's functions around it is.
size_t CallerOfGLibsMalloc(const std::vector<LossFrame>& stack) {
  size_t i = stack.empty() ? 0 : 1;
  while (i < stack.size() && IsOfGLib(stack[i]) &&
         (stack[i].function.empty() ||
          names::IsAllocatorFunction(BareFunction(stack[i].function)))) {
    ++i;
  }
  return i;
}

// GLib's own array of a hash table, not what a function allocates that was called for its entries.
bool IsOfAHashTable(const std::vector<LossFrame>& stack) {
  for (size_t i = 1; i < stack.size() && IsOfGLib(stack[i]); ++i) {
    if (absl::StartsWith(stack[i].function, "g_hash_table_")) return true;
  }
  return false;
}

// Types, their classes and interfaces, which all hang on the nodes of types.
bool IsOfAType(const std::vector<LossFrame>& stack) {
  for (size_t i = CallerOfGLibsMalloc(stack); i < stack.size() && IsOfGObject(stack[i]); ++i) {
    if (absl::StartsWith(stack[i].function, "g_type_")) return true;
  }
  return false;
}

uint64_t BlocksOf(const LostOnASide& side, LeakKind kind) {
  return side.kinds[static_cast<size_t>(kind)].blocks;
}

auto FirstOfSlices(const std::vector<LossFrame>& stack) {
  return std::ranges::find_if(stack, [](const LossFrame& frame) {
    return IsOfGLibsSlices(frame.function);
  });
}

bool HasLostNone(const LostOnASide& side) {
  return BlocksOf(side, LeakKind::kDefinite) + BlocksOf(side, LeakKind::kIndirect) == 0;
}

}  // namespace

bool IsDeclaredByGLib(const render::Loss& there) {
  return !there.stack.empty() &&
         (IsOfGLib(there.stack.front()) || IsOfGObject(there.stack.front()));
}

std::vector<LossFrame> InGLibWithoutMalloc(const render::Loss& here) {
  const size_t caller = CallerOfGLibsMalloc(here.stack);
  if (caller < 2 || caller == here.stack.size()) return {};
  const LossFrame& frame = here.stack[caller];
  if (!IsOfGLib(frame) && !IsOfGObject(frame)) return {};
  return {here.stack.begin() + static_cast<ptrdiff_t>(caller), here.stack.end()};
}

bool IsOfASlice(const std::vector<LossFrame>& stack) {
  return FirstOfSlices(stack) != stack.end();
}

bool IsASliceOfMalloc(const std::vector<LossFrame>& stack) {
  const auto slices = FirstOfSlices(stack);
  return slices != stack.begin() && slices != stack.end() &&
         BareFunction(std::prev(slices)->function) == "g_malloc";
}

bool TakesSlicesFromMalloc(const std::vector<render::Loss>& losses) {
  bool takes = false;
  for (const render::Loss& loss : losses) {
    if (IsASliceOfMalloc(loss.stack)) {
      takes = true;
    } else if (IsOfASlice(loss.stack)) {
      return false;
    }
  }
  return takes;
}

GLibReason GLibsReason(const ComparedLeak& leak, bool declared) {
  const LeakAmount here = leak.here.total(), there = leak.there.total();
  const bool none_is_lost = HasLostNone(leak.here) && HasLostNone(leak.there);
  if (declared) {
    // An object with private data is two blocks for memcheck, of which one has a word more.
    const bool one_for_one = here.blocks == there.blocks && here.bytes > there.bytes &&
                             here.bytes - there.bytes <= kMostAround * here.blocks;
    const bool two_for_one = 2 * here.blocks == there.blocks && here.bytes <= there.bytes &&
                             there.bytes - here.bytes <= kMostAround * here.blocks;
    return {"GLib tells Valgrind of blocks within those that it takes from malloc, which are what "
            "is seen here: memcheck has the nodes of fundamental types, and objects and their "
            "private data, by themselves",
            none_is_lost && (one_for_one || two_for_one)};
  }
  if (leak.verdict == Verdict::kAmountDiffers && here.blocks == there.blocks &&
      here.bytes < there.bytes && there.bytes <= 2 * here.bytes && IsOfAHashTable(leak.stack)) {
    const auto same = [&](LeakKind kind) {
      return BlocksOf(leak.here, kind) == BlocksOf(leak.there, kind);
    };
    return {"an array of a hash table of GLib's, which has entries of 4 bytes as long as these are "
            "small numbers, and under Valgrind never",
            same(LeakKind::kDefinite) && same(LeakKind::kIndirect) && same(LeakKind::kPossible) &&
                same(LeakKind::kReachable)};
  }
  if (BlocksOf(leak.here, LeakKind::kPossible) > BlocksOf(leak.there, LeakKind::kPossible) &&
      BlocksOf(leak.here, LeakKind::kReachable) < BlocksOf(leak.there, LeakKind::kReachable) &&
      IsOfAType(leak.stack)) {
    return {"GLib tells Valgrind where within their blocks the nodes of fundamental types begin, "
            "and objects that have private data; here pointers to these point into blocks, and "
            "all that types lead to hangs on them",
            leak.verdict == Verdict::kKindDiffers && none_is_lost};
  }
  return {};
}

}  // namespace memtrace::report::valgrind
