#include "report/render/stack_walk.h"

#include <algorithm>

namespace memtrace::report::render {

void StackWalk::GoTo(StackId stack) {
  const StackTable& stacks = symbols_.stacks();
  size_t depth = stacks.DepthOf(stack);
  new_steps_.clear();
  for (StackId node = stack; depth > 0; --depth) {
    if (depth <= steps_.size() && steps_[depth - 1].node == node) break;
    new_steps_.push_back(node);
    node = stacks.node(node).parent;
  }
  steps_.resize(depth);
  size_ = depth == 0 ? 0 : steps_.back().frames;
  keys_good_ = std::min(keys_good_, size_);
  for (size_t i = new_steps_.size(); i-- > 0;) {
    Prepend(symbols_.FramesOf(stacks.node(new_steps_[i])));
    steps_.push_back({new_steps_[i], size_});
  }
}

void StackWalk::Prepend(absl::Span<const Frame> run) {
  if (buffer_.size() < size_ + run.size()) {
    std::vector<const Frame*> larger(2 * (size_ + run.size()));
    std::copy(buffer_.end() - static_cast<ptrdiff_t>(size_), buffer_.end(),
              larger.end() - static_cast<ptrdiff_t>(size_));
    buffer_ = std::move(larger);
  }
  size_ += run.size();
  const Frame** to = buffer_.data() + buffer_.size() - size_;
  for (const Frame& frame : run) *to++ = &frame;
}

uint32_t StackWalk::Key() {
  for (; keys_good_ < size_; ++keys_good_) {
    const uint32_t identity = buffer_[buffer_.size() - 1 - keys_good_]->identity;
    if (keys_good_ < keys_.size()) {
      if (keys_[keys_good_].identity == identity) continue;  // another node that reads alike
      keys_.resize(keys_good_);
    }
    const uint32_t parent = keys_.empty() ? 0 : keys_.back().key;
    const auto key = static_cast<uint32_t>(tree_.size() + 1);
    keys_.push_back({identity, tree_.try_emplace({parent, identity}, key).first->second});
  }
  return size_ == 0 ? 0 : keys_[size_ - 1].key;
}

}  // namespace memtrace::report::render
