#include "preload/stack_trie.h"

namespace memtrace {

bool StackTrie::Allocate(size_t nodes) {
  auto* memory = static_cast<StackNode*>(OwnMap(nodes * sizeof(StackNode), /*touch=*/true));
  if (memory == nullptr) return false;
  nodes_ = memory;
  mask_ = nodes - 1;
  evictions_ = 0;
  Restart();
  return true;
}

void StackTrie::Grow() {
  const OwnFaultsScope faults;
  StackNode* const old = nodes_;
  const size_t old_nodes = mask_ + 1;
  if (Allocate(old_nodes * 4 > largest_ ? largest_ : old_nodes * 4)) {
    OwnUnmap(old, old_nodes * sizeof(StackNode));
  } else {
    evictions_ = 0;  // no memory now: ask again after as many evictions
  }
}

void StackTrie::Rebase() {
  for (size_t i = 0; i <= mask_; ++i) nodes_[i] = {};
  root_uid_ = 1;
  last_uid_ = 2;
}

}  // namespace memtrace
