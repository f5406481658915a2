// leak_cases CASE: what memcheck's classes are told apart by, a case each. Every block of a
// case is allocated by a function of its own name, so that records can be told by stacks.
//
// Pointers are made in functions that have returned by the end, and their frames are written
// over: what stays is what a case keeps.

#define _GLIBCXX_USE_CXX11_ABI 0  // std::string has its characters in a block, behind a header

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>
#include <vector>

#define NOINLINE __attribute__((noinline, noclone))

namespace {

struct Node {
  void* next;
  void* other;
  uint64_t filler[2];
};

NOINLINE void* AllocA() { return calloc(1, sizeof(Node)); }
NOINLINE void* AllocB() { return calloc(1, sizeof(Node) + 16); }
NOINLINE void* AllocC() { return calloc(1, sizeof(Node) + 32); }
NOINLINE void* AllocD() { return calloc(1, sizeof(Node) + 48); }

void* g_roots[32];
void* Inside(void* block) { return static_cast<char*>(block) + 8; }
Node* N(void* block) { return static_cast<Node*>(block); }

NOINLINE void WriteOverTheStack() {
  volatile char bytes[16384];
  for (size_t i = 0; i < sizeof(bytes); ++i) bytes[i] = 0;
}

NOINLINE void* Case1B() { return AllocB(); }
NOINLINE void* Case2A() { return AllocA(); }
NOINLINE void* Case2B() { return AllocB(); }
NOINLINE void* Case3B() { return AllocB(); }
NOINLINE void* Case4A() { return AllocA(); }
NOINLINE void* Case4B() { return AllocB(); }
NOINLINE void* Case5B() { return AllocB(); }
NOINLINE void* Case6A() { return AllocA(); }
NOINLINE void* Case6B() { return AllocB(); }
NOINLINE void* Case7A() { return AllocA(); }
NOINLINE void* Case7B() { return AllocB(); }
NOINLINE void* Case8A() { return AllocA(); }
NOINLINE void* Case8B() { return AllocB(); }
NOINLINE void* Case9A() { return AllocA(); }
NOINLINE void* Case9B() { return AllocB(); }

NOINLINE void NineCases() {
  g_roots[1] = Case1B();
  g_roots[2] = Case2A();
  N(g_roots[2])->next = Case2B();
  Case3B();
  N(Case4A())->next = Case4B();
  g_roots[5] = Inside(Case5B());
  g_roots[6] = Case6A();
  N(g_roots[6])->next = Inside(Case6B());
  void* a = Case7A();
  N(a)->next = Case7B();
  g_roots[7] = Inside(a);
  a = Case8A();
  N(a)->next = Inside(Case8B());
  g_roots[8] = Inside(a);
  N(Case9A())->next = Inside(Case9B());
}

NOINLINE void Ring() {  // with a tail
  void *a = AllocA(), *b = AllocB(), *c = AllocC();
  N(a)->next = b;
  N(b)->next = c;
  N(c)->next = a;
  N(b)->other = AllocD();
}

NOINLINE void PointedIntoRing() {  // the ring's first stays a leader
  void *a = AllocA(), *b = AllocB(), *c = AllocC();
  N(a)->next = b;
  N(b)->next = a;
  N(c)->next = b;
}

NOINLINE void LeaderJoins() {  // c leads to a, which was looked at first
  void *a = AllocA(), *b = AllocB(), *c = AllocC();
  N(a)->next = b;
  N(c)->next = a;
}

NOINLINE void SharedChild() {
  void *a = AllocA(), *b = AllocB(), *c = AllocC();
  N(a)->next = c;
  N(b)->next = c;
}

NOINLINE void SelfPointer() {
  void* a = AllocA();
  N(a)->next = a;
  void* b = AllocB();
  N(b)->next = Inside(b);
}

NOINLINE void Ends() {  // sizes 0 and odd, behind the end, the last byte
  g_roots[0] = malloc(0);
  void* a = AllocA();
  g_roots[1] = static_cast<char*>(a) + sizeof(Node);
  void* b = malloc(33);
  g_roots[2] = static_cast<char*>(b) + 32;
}

NOINLINE void PartialWord() {  // the pointer's word does not lie in the block wholly
  char* a = static_cast<char*>(calloc(1, 20));
  g_roots[0] = a;
  void* b = AllocB();
  memcpy(a + 16, &b, 4);
}

NOINLINE void BothWays() {  // possible first, reachable by another way
  void* a = AllocA();
  N(a)->next = AllocB();
  g_roots[0] = Inside(a);
  g_roots[20] = a;
}

NOINLINE void LongList() {
  void* last = nullptr;
  for (int i = 0; i < 1000; ++i) {
    void* a = AllocA();
    N(a)->next = last;
    last = a;
  }
}

struct Cookie {
  ~Cookie() { value = 0; }
  int value = 0;
};
NOINLINE Cookie* MakeArray() { return new Cookie[5]; }
NOINLINE void NewArray() { g_roots[0] = MakeArray(); }
NOINLINE void NewEmptyArray() { g_roots[0] = new Cookie[0]; }

NOINLINE void Length64() {
  auto* p = static_cast<uint64_t*>(calloc(1, 48));
  p[0] = 40;
  g_roots[0] = p + 1;
}

struct FirstBase {
  virtual ~FirstBase() = default;
  uint64_t a = 1;
};
struct SecondBase {
  virtual ~SecondBase() = default;
  uint64_t b = 2;
};
struct Both : FirstBase, SecondBase {
  uint64_t c = 3;
};
NOINLINE void SecondBases() {
  SecondBase* second = new Both;
  g_roots[0] = second;
}

NOINLINE void OldString() { g_roots[0] = new std::string("a text that has a block of its own"); }

NOINLINE void Containers() {
  auto* v = new std::vector<std::string*>;
  for (int i = 0; i < 10; ++i) v->push_back(new std::string("text"));
  g_roots[0] = v;
  new std::vector<int>(100);
}

NOINLINE void MappedRoot() {
  void** page = static_cast<void**>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE,
                                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  page[7] = AllocA();
  void* large = calloc(1, 1 << 20);  // has a mapping of its own
  N(large)->next = AllocB();
  g_roots[0] = large;
  void* lost = calloc(1, 1 << 20);
  N(lost)->next = AllocC();
}

thread_local void* t_pointer;
pthread_key_t g_key;
volatile int g_ready;
NOINLINE void* HoldsBlocks(void*) {
  void* on_stack[2] = {AllocA(), nullptr};
  t_pointer = AllocB();
  pthread_setspecific(g_key, AllocC());
  WriteOverTheStack();
  asm volatile("" : : "r"(on_stack) : "memory");
  __atomic_store_n(&g_ready, 1, __ATOMIC_SEQ_CST);
  for (;;) pause();
}
NOINLINE void Threads() {
  pthread_key_create(&g_key, nullptr);
  pthread_t thread;
  pthread_create(&thread, nullptr, HoldsBlocks, nullptr);
  pthread_detach(thread);
  while (__atomic_load_n(&g_ready, __ATOMIC_SEQ_CST) == 0) usleep(1000);
}

NOINLINE void Reallocs() {
  char* grows = static_cast<char*>(AllocA());
  for (size_t size = 64; size < 100000; size *= 2) grows = static_cast<char*>(realloc(grows, size));
  free(AllocB());
  char* kept = static_cast<char*>(realloc(nullptr, 40));
  g_roots[0] = kept;
}

NOINLINE void LostInSizesOfAllKinds() {
  for (size_t size = 1; size < 200; ++size) memset(malloc(size), 0, size);
}

}  // namespace

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    void (*run)();
  } kCases[] = {
      {"nine", NineCases}, {"ring", Ring}, {"into-ring", PointedIntoRing},
      {"leader-joins", LeaderJoins}, {"shared-child", SharedChild}, {"self", SelfPointer},
      {"ends", Ends}, {"partial-word", PartialWord}, {"both-ways", BothWays},
      {"long-list", LongList}, {"new-array", NewArray}, {"new-empty-array", NewEmptyArray},
      {"length64", Length64}, {"second-bases", SecondBases}, {"old-string", OldString},
      {"containers", Containers}, {"mapped", MappedRoot}, {"threads", Threads},
      {"reallocs", Reallocs}, {"sizes", LostInSizesOfAllKinds},
  };
  for (const auto& one : kCases) {
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
      puts(one.name);
    } else if (argc == 2 && strcmp(argv[1], one.name) == 0) {
      one.run();
      WriteOverTheStack();
      return 0;
    }
  }
  return argc == 2 && strcmp(argv[1], "--list") == 0 ? 0 : 2;
}
