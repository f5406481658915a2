// A program whose operator new takes objects from pools that it gets from malloc.
#include <cstddef>
#include <cstdlib>
#include <new>

#include "expect.h"

namespace {
constexpr size_t kPool = 65537;
char* g_next = nullptr;
size_t g_left = 0;
long g_pools = 0;
}  // namespace

void* operator new(size_t bytes) {
  bytes = (bytes + 15) & ~size_t{15};
  if (bytes > g_left) {
    g_next = static_cast<char*>(malloc(kPool));
    if (g_next == nullptr) throw std::bad_alloc();
    g_left = kPool;
    ++g_pools;
  }
  void* block = g_next;
  g_next += bytes;
  g_left -= bytes;
  return block;
}
void operator delete(void*) noexcept {}
void operator delete(void*, size_t) noexcept {}

struct Node {
  char content[400];
};

int main() {
  for (int i = 0; i < 1000; ++i) {
    Node* volatile node = new Node;
    node->content[0] = 1;
    delete node;
  }
  Tell("pool %zu %ld\n", kPool, g_pools);
  return 0;
}
