// StackWalk: the frames of one stack after another, and a number for each that two have in common
// if and only if they read alike.
//
// Stacks in the order of a trace have most of their outer frames in common with the one before.
// Those are neither looked up nor numbered again: a step costs what is new of a stack.
//
// One thread. Holds a reference to the names and to the table of the stacks.

#ifndef MEMTRACE_REPORT_RENDER_STACK_WALK_H_
#define MEMTRACE_REPORT_RENDER_STACK_WALK_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "report/names/frame.h"
#include "report/names/site_symbols.h"
#include "report/trace/stack_table.h"

namespace memtrace::report::render {

class StackWalk {
 public:
  explicit StackWalk(const SiteSymbols& symbols) : symbols_(symbols) {}

  void GoTo(StackId stack);

  // Innermost first, as SiteSymbols::Stack(). Until the next step.
  absl::Span<const Frame* const> frames() const {
    return {buffer_.data() + buffer_.size() - size_, size_};
  }
  // 0: there are no frames.
  uint32_t Key();

 private:
  // A node of the stack; with it and those outside of it there are `frames` of them.
  struct Step {
    StackId node;
    size_t frames;
  };

  void Prepend(absl::Span<const Frame> run);

  const SiteSymbols& symbols_;
  std::vector<Step> steps_;            // outermost first
  std::vector<StackId> new_steps_;     // in GoTo(), innermost first
  std::vector<const Frame*> buffer_;   // its last size_ elements are the frames
  size_t size_ = 0;
  // Keys are kept as a tree, which stacks share as far as their outer frames read alike.
  absl::flat_hash_map<std::pair<uint32_t, uint32_t>, uint32_t> tree_;
  struct KeyStep {
    uint32_t identity, key;
  };
  // Of the outer frames of the latest stack that was asked, outermost first.
  std::vector<KeyStep> keys_;
  size_t keys_good_ = 0;       // as many of keys_ are of this stack
};

}  // namespace memtrace::report::render

#endif  // MEMTRACE_REPORT_RENDER_STACK_WALK_H_
