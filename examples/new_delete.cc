// new_delete: C++ allocates through operator new, which the stack shows, inlined callers included.
//
// Each form of new leaks once from a function of its own. operator new, new[] and the aligned forms
// end in malloc and aligned_alloc: the sizes are those the C++ library asked for.
//
//   expect: leak 48 bytes in 1 block at @new in LeakANew
//   expect: leak 1000 bytes in 1 block at @array in LeakAnArray
//   expect: leak 256 bytes in 1 block at @aligned in LeakAnAligned
//   expect: leak 80 bytes in 2 blocks at @vector in LeakFromAnInlineFunction
//   expect: no leak in DeletesEverything
//   expect: text "operator new"
#include <cstddef>
#include <memory>
#include <new>
#include <string>
#include <vector>

namespace {

struct Node {
  char payload[48];
};

struct alignas(64) CacheLine {
  char bytes[256];
};

void* volatile g_sink;  // the compiler must not leave out what nobody uses

[[gnu::noinline]] void LeakANew() {
  g_sink = new Node;  // @new
}

[[gnu::noinline]] void LeakAnArray() {
  g_sink = new char[1000];  // @array
}

[[gnu::noinline]] void LeakAnAligned() {
  g_sink = new CacheLine;  // @aligned
}

[[gnu::always_inline]] inline void* Allocate(std::size_t bytes) {
  return operator new(bytes);  // @vector
}

[[gnu::noinline]] void LeakFromAnInlineFunction(int times) {
  for (int i = 0; i < times; ++i) g_sink = Allocate(40);
}

[[gnu::noinline]] void DeletesEverything() {
  auto node = std::make_unique<Node>();
  auto line = std::make_unique<CacheLine>();
  std::vector<std::string> words(10, std::string(100, 'x'));
  g_sink = node.get();
  g_sink = line.get();
  g_sink = words.data();
}

}  // namespace

int main() {
  LeakANew();
  LeakAnArray();
  LeakAnAligned();
  LeakFromAnInlineFunction(2);
  DeletesEverything();
  g_sink = nullptr;
}
