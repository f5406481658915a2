// A list of objects from operator new, each of which holds a block of malloc's of 777 bytes; and 40 blocks of
// 1311 bytes that nothing points to. The objects are none of malloc's where the allocator has an
// operator new of its own.
#include <cstdlib>
#include <cstring>

#include "expect.h"

namespace {

struct Holder {
  void* held;
  Holder* next;
  char rest[100];
};
Holder* g_first;
void* volatile g_lost;

[[gnu::noinline]] void CleanStack() {
  volatile char frames[32 << 10];
  for (size_t i = 0; i < sizeof(frames); ++i) frames[i] = 0;
}

}  // namespace

int main() {
  for (int i = 0; i < 400; ++i) {
    auto* const holder = new Holder;
    holder->held = malloc(777);
    holder->next = g_first;
    g_first = holder;
    if (i % 10 != 0) continue;
    g_lost = memset(malloc(1311), 0, 1311);
    g_lost = nullptr;
  }
  CleanStack();
  size_t held = 0;
  for (const Holder* holder = g_first; holder != nullptr; holder = holder->next) held += holder->held != nullptr;
  Tell("held %zu\n", held);
  return 0;
}
