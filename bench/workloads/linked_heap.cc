// Fills MEGABYTES of heap with blocks that point to each other, as a program with maps, lists and
// strings does, loses one of a thousand, lets THREADS sleep, and returns from main. What then
// takes time is the search for leaks. Prints how many bytes it holds.
//
//   linked_heap MEGABYTES THREADS

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

namespace {

struct Node {
  Node* next;
  Node* random;
  size_t bytes;
  unsigned char text[1];
};

Node* g_first = nullptr;

}  // namespace

int main(int argc, char** argv) {
  const size_t wanted = (argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 100) << 20;
  const int threads = argc > 2 ? std::atoi(argv[2]) : 0;
  uint64_t random = 88172645463325252u;
  std::vector<Node*> all;
  size_t held = 0;
  for (size_t count = 0; held < wanted; ++count) {
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    const size_t bytes = sizeof(Node) + random % 200;
    auto* const node = static_cast<Node*>(std::malloc(bytes));
    std::memset(node->text, 'x', bytes - offsetof(Node, text));
    node->bytes = bytes;
    node->random = all.empty() ? nullptr : all[random % all.size()];
    node->next = nullptr;
    held += bytes;
    if (count % 1000 == 999) continue;  // lost
    node->next = g_first;
    g_first = node;
    all.push_back(node);
  }
  for (int i = 0; i < threads; ++i) {
    std::thread([] {
      for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
    }).detach();
  }
  std::printf("%zu\n", held);
  return 0;
}
