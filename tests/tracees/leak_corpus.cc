// Some two hundred small programs in one file: `leak_corpus NAME` is one of them, `leak_corpus --list`
// prints the names. Each ends with blocks of known places in the heap: a shape of blocks, held by a
// kind of root (or none), allocated in one way. What memcheck says of each is the truth that
// e2e/leak_corpus_test.cc compares with.
//
//   shape/ROOT/SHAPE    memcheck's nine cases and more, held in each kind of root
//   lost/HOW/SHAPE      shapes that nothing holds, allocated by each function
//   size/HELD/BYTES     one block of this size: lost, held by its start, its inside, its last byte,
//                       by its end
//   heuristic/WHAT/ROOT interior pointers that memcheck's heuristics accept, and near misses
//   end/WAY             the ways in which a program ends
//   thread/WHAT         blocks of threads that ended, or wait

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

namespace {

struct Node {
  Node* left;
  Node* right;
  uint64_t pad[3];
};

using Allocate = void* (*)(size_t);
void* ByMalloc(size_t n) { return malloc(n); }
void* ByCalloc(size_t n) { return calloc(1, n); }
void* ByRealloc(size_t n) { return realloc(malloc(n / 2), n); }
void* ByAligned(size_t n) {
  void* p = nullptr;
  return posix_memalign(&p, 64, n) == 0 ? p : nullptr;
}
void* ByNew(size_t n) { return operator new(n); }
void* ByNewArray(size_t n) { return operator new[](n); }

Allocate g_allocate = ByMalloc;

// Each block of a shape has a stack of its own, so that it has a record of its own.
template <int kWhich>
[[gnu::noinline]] Node* Block() {
  Node* node = static_cast<Node*>(g_allocate(sizeof(Node)));
  memset(static_cast<void*>(node), 0, sizeof(*node));
  asm volatile("" ::: "memory");
  return node;
}
Node* Inside(Node* node) { return reinterpret_cast<Node*>(reinterpret_cast<char*>(node) + 16); }
Node* Behind(Node* node) { return node + 1; }

// What a shape hands to its root: two pointers, one of them perhaps null.
struct Held {
  Node* first = nullptr;
  Node* second = nullptr;
};

using Shape = Held (*)();
[[gnu::noinline]] Held Start() { return {Block<1>()}; }
[[gnu::noinline]] Held Interior() { return {Inside(Block<1>())}; }
[[gnu::noinline]] Held End() { return {Behind(Block<1>())}; }
[[gnu::noinline]] Held StartStart() {
  Node* a = Block<1>();
  a->left = Block<2>();
  return {a};
}
[[gnu::noinline]] Held StartInterior() {
  Node* a = Block<1>();
  a->left = Inside(Block<2>());
  return {a};
}
[[gnu::noinline]] Held InteriorStart() {
  Node* a = Block<1>();
  a->left = Block<2>();
  return {Inside(a)};
}
[[gnu::noinline]] Held InteriorInterior() {
  Node* a = Block<1>();
  a->left = Inside(Block<2>());
  return {Inside(a)};
}
[[gnu::noinline]] Held Self() {
  Node* a = Block<1>();
  a->left = a;
  return {a};
}
[[gnu::noinline]] Held RingOfThree() {
  Node* a = Block<1>();
  Node* b = Block<2>();
  Node* c = Block<3>();
  a->left = b;
  b->left = c;
  c->left = a;
  return {a};
}
[[gnu::noinline]] Held RingWithTail() {
  const Held ring = RingOfThree();
  ring.first->right = Block<4>();
  ring.first->right->left = Block<5>();
  return ring;
}
[[gnu::noinline]] Held Tree() {
  Node* a = Block<1>();
  a->left = Block<2>();
  a->right = Block<3>();
  a->left->left = Block<4>();
  a->left->right = Block<5>();
  return {a};
}
[[gnu::noinline]] Held Diamond() {
  Node* a = Block<1>();
  a->left = Block<2>();
  a->right = Block<3>();
  a->left->left = a->right->left = Block<4>();
  return {a};
}
[[gnu::noinline]] Held TwoOwners() {
  Node* a = Block<1>();
  Node* b = Block<2>();
  a->left = b->left = Block<3>();
  return {a, b};
}
[[gnu::noinline]] Held List() {
  Node* head = nullptr;
  for (int i = 0; i < 10; ++i) {
    Node* node = Block<1>();
    node->left = head;
    head = node;
  }
  return {head};
}
// Possible by the first, then reachable by the second: what hangs on it becomes better too.
[[gnu::noinline]] Held Better() {
  Node* a = Block<1>();
  a->left = Block<2>();
  a->left->left = Block<3>();
  Node* b = Block<4>();
  b->left = a;
  return {Inside(a), b};
}
[[gnu::noinline]] Held InteriorRing() {
  Node* a = Block<1>();
  Node* b = Block<2>();
  a->left = Inside(b);
  b->left = Inside(a);
  return {a};
}
[[gnu::noinline]] Held BackToFirst() {  // a possible block that points at a reachable one's inside
  Node* a = Block<1>();
  Node* b = Block<2>();
  a->left = Inside(b);
  b->left = a;
  b->right = Block<3>();
  return {a};
}

struct NamedShape {
  const char* name;
  Shape shape;
};
constexpr NamedShape kShapes[] = {
    {"start", Start}, {"interior", Interior}, {"end", End}, {"start-start", StartStart},
    {"start-interior", StartInterior}, {"interior-start", InteriorStart},
    {"interior-interior", InteriorInterior}, {"self", Self}, {"ring", RingOfThree},
    {"ring-with-tail", RingWithTail}, {"tree", Tree}, {"diamond", Diamond},
    {"two-owners", TwoOwners}, {"list", List}, {"better", Better},
    {"interior-ring", InteriorRing}, {"back-to-first", BackToFirst}};

// Leaves no copy of a pointer on the part of the stack that was used.
[[gnu::noinline]] void WipeStack() {
  volatile char bytes[64 << 10];
  for (volatile char& byte : bytes) byte = 0;
}

[[gnu::noinline]] void Make(Shape shape, Held* held) {
  *held = shape();
  WipeStack();
}

Held g_in_data = {reinterpret_cast<Node*>(8), nullptr};
Held g_in_bss;
thread_local Held t_held;
struct Outer {
  Held held;
};
Outer* g_outer;
Held* volatile g_mapped;
std::atomic<bool> g_ready{false};

void InData(Shape shape) { Make(shape, &g_in_data); }
void InBss(Shape shape) { Make(shape, &g_in_bss); }
void InStatic(Shape shape) {
  static Held held;
  Make(shape, &held);
}
void InThreadLocal(Shape shape) { Make(shape, &t_held); }
void InHeap(Shape shape) {
  g_outer = static_cast<Outer*>(calloc(1, sizeof(Outer)));
  Make(shape, &g_outer->held);
}
void InMapping(Shape shape) {
  g_mapped = static_cast<Held*>(mmap(nullptr, 8192, PROT_READ | PROT_WRITE,
                                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  Make(shape, g_mapped);
}
void InSharedMapping(Shape shape) {
  g_mapped = static_cast<Held*>(mmap(nullptr, 8192, PROT_READ | PROT_WRITE,
                                     MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  Make(shape, g_mapped);
}
// Waits for ever, with nothing in registers: what calls left in them is not the same under
// Valgrind, whose malloc and memset are others.
[[noreturn]] void Wait() {
  g_ready = true;
  asm volatile(
      "xor %%ebx, %%ebx\n\txor %%ebp, %%ebp\n\txor %%r12d, %%r12d\n\txor %%r13d, %%r13d\n\t"
      "xor %%r14d, %%r14d\n\txor %%r15d, %%r15d\n\txor %%edi, %%edi\n\txor %%esi, %%esi\n\t"
      "xor %%edx, %%edx\n\txor %%r8d, %%r8d\n\txor %%r9d, %%r9d\n\txor %%r10d, %%r10d\n"
      "1: mov $34, %%eax\n\tsyscall\n\tjmp 1b"  // pause()
      :
      :
      : "memory");
  __builtin_unreachable();
}
template <typename Function>
void OnWaitingThread(Function* function, void* argument) {
  pthread_t thread;
  pthread_create(&thread, nullptr, function, argument);
  while (!g_ready) usleep(1000);
}
void* HoldOnStack(void* shape) {
  Held held;
  Make(reinterpret_cast<Shape>(shape), &held);
  asm volatile("" : : "r"(&held) : "memory");
  Wait();
}
void InThreadsStack(Shape shape) { OnWaitingThread(HoldOnStack, reinterpret_cast<void*>(shape)); }
void* HoldThreadLocal(void* shape) {
  Make(reinterpret_cast<Shape>(shape), &t_held);
  Wait();
}
void InThreadsLocal(Shape shape) { OnWaitingThread(HoldThreadLocal, reinterpret_cast<void*>(shape)); }
// In registers that a system call keeps, and nowhere else.
void* HoldInRegisters(void* shape) {
  static Held held;
  Make(reinterpret_cast<Shape>(shape), &held);
  Node* first = held.first;
  Node* second = held.second;
  held = {};
  g_ready = true;
  register Node* r14 asm("r14") = first;
  register Node* r15 asm("r15") = second;
  first = second = nullptr;
  asm volatile(
      "xor %%ebx, %%ebx\n\txor %%ebp, %%ebp\n\txor %%r12d, %%r12d\n\txor %%r13d, %%r13d\n\t"
      "xor %%edi, %%edi\n\txor %%esi, %%esi\n\txor %%edx, %%edx\n\txor %%r8d, %%r8d\n\t"
      "xor %%r9d, %%r9d\n\txor %%r10d, %%r10d\n"
      "1: mov $34, %%eax\n\tsyscall\n\tjmp 1b"  // pause()
      : "+r"(r14), "+r"(r15)
      :
      : "memory");
  __builtin_unreachable();
}
void InRegisters(Shape shape) { OnWaitingThread(HoldInRegisters, reinterpret_cast<void*>(shape)); }
[[noreturn, gnu::noinline]] void OnMainStack(Shape shape) {
  Held held;
  Make(shape, &held);
  asm volatile("" : : "r"(&held) : "memory");
  exit(0);
}

using Root = void (*)(Shape);
struct NamedRoot {
  const char* name;
  Root root;
};
constexpr NamedRoot kRoots[] = {
    {"data", InData}, {"bss", InBss}, {"static", InStatic}, {"thread-local", InThreadLocal},
    {"heap", InHeap}, {"mapping", InMapping}, {"shared-mapping", InSharedMapping},
    {"thread-stack", InThreadsStack}, {"other-thread-local", InThreadsLocal},
    {"registers", InRegisters}, {"main-stack", OnMainStack}};

struct NamedFunction {
  const char* name;
  Allocate function;
};
constexpr NamedFunction kFunctions[] = {
    {"malloc", ByMalloc}, {"calloc", ByCalloc}, {"realloc", ByRealloc},
    {"posix_memalign", ByAligned}, {"new", ByNew}, {"new-array", ByNewArray}};

// Heuristics. Each makes a block with an interior pointer to its second word or so.
void* g_interior;
[[gnu::noinline]] void LengthFirst(uint64_t off) {
  uint64_t* block = static_cast<uint64_t*>(calloc(1, 72));
  block[0] = 64 + off;
  g_interior = block + 1;
}
[[gnu::noinline]] void ArrayCookie(uint64_t count, size_t each, size_t extra) {
  uint64_t* block = static_cast<uint64_t*>(calloc(1, 8 + count * each + extra));
  block[0] = count;
  g_interior = block + 1;
}
[[gnu::noinline]] void OldString(uint64_t length, uint64_t capacity, size_t extra) {
  uint64_t* block = static_cast<uint64_t*>(calloc(1, 24 + capacity + 1 + extra));
  block[0] = length;
  block[1] = capacity;
  g_interior = block + 3;
}
struct First {
  virtual ~First() = default;
  virtual int F() { return 1; }
  uint64_t one = 1;
};
struct Second {
  virtual ~Second() = default;
  virtual int G() { return 2; }
  uint64_t two = 2;
};
struct Both : First, Second {
  uint64_t three = 3;
};
[[gnu::noinline]] void SecondBase() { g_interior = static_cast<Second*>(new Both); }
struct Plain {
  uint64_t words[6] = {1, 2, 3, 4, 5, 6};
};
[[gnu::noinline]] void NoBase() { g_interior = &(new Plain)->words[2]; }
struct WithDestructor {
  ~WithDestructor() { asm volatile("" ::: "memory"); }
  uint64_t words[3];
};
[[gnu::noinline]] void NewArray() { g_interior = new WithDestructor[5]; }

[[gnu::noinline]] void LeakHere() {
  free(malloc(7));
  asm volatile("" : : "r"(malloc(77)));
}
void* LeakOnThread(void*) {
  LeakHere();
  return nullptr;
}
void* ReturnBlock(void*) { return malloc(55); }
void* ExitFromThread(void*) {
  LeakHere();
  WipeStack();
  exit(0);
}
void OnJoinedThread(void* (*function)(void*)) {
  pthread_t thread;
  pthread_create(&thread, nullptr, function, nullptr);
  pthread_join(thread, nullptr);
}
pthread_key_t g_key;
void* HoldSpecific(void*) {
  pthread_setspecific(g_key, malloc(66));
  WipeStack();
  Wait();
}

// Sizes: what holds the block.
using Hold = void* (*)(char* block, size_t bytes);
struct NamedHold {
  const char* name;
  size_t least_bytes;
  Hold hold;
};
constexpr NamedHold kHolds[] = {
    {"lost", 0, [](char*, size_t) -> void* { return nullptr; }},
    {"start", 0, [](char* block, size_t) -> void* { return block; }},
    {"middle", 2, [](char* block, size_t bytes) -> void* { return block + bytes / 2; }},
    {"last-byte", 2, [](char* block, size_t bytes) -> void* { return block + bytes - 1; }},
    {"end", 1, [](char* block, size_t bytes) -> void* { return block + bytes; }}};
constexpr size_t kSizes[] = {0,  1,  7,  8,  15, 16,  17,   23,   24,     25,    31,
                             32, 33, 40, 64, 100, 1000, 4096, 100000, 200000, 4000000};
[[gnu::noinline]] void HoldBlock(Hold hold, size_t bytes) {
  char* block = static_cast<char*>(malloc(bytes));
  memset(block, 0xff, bytes);  // of bytes that were never written memcheck believes nothing
  g_interior = hold(block, bytes);
}

struct NamedCase {
  const char* name;
  void (*run)();
};
constexpr NamedCase kCases[] = {
    {"heuristic/length64", [] { LengthFirst(0); }},
    {"heuristic/length64-wrong", [] { LengthFirst(1000); }},
    {"heuristic/newarray", [] { ArrayCookie(5, 24, 0); }},
    {"heuristic/newarray-wrong", [] { ArrayCookie(5, 24, 3); }},
    {"heuristic/newarray-real", [] { NewArray(); }},
    {"heuristic/stdstring", [] { OldString(10, 30, 0); }},
    {"heuristic/stdstring-full", [] { OldString(30, 30, 0); }},
    {"heuristic/stdstring-too-long", [] { OldString(31, 30, 0); }},
    {"heuristic/stdstring-other-size", [] { OldString(10, 30, 5); }},
    {"heuristic/multipleinheritance", [] { SecondBase(); }},
    {"heuristic/multipleinheritance-none", [] { NoBase(); }},
    {"end/return", [] { LeakHere(); }},
    {"end/exit", [] { LeakHere(); WipeStack(); exit(0); }},
    {"end/_exit", [] { LeakHere(); WipeStack(); _exit(0); }},
    {"end/quick_exit", [] { LeakHere(); WipeStack(); quick_exit(0); }},
    {"end/quick_exit-frees", [] {
       g_interior = malloc(98);
       at_quick_exit([] { free(g_interior); });
       quick_exit(0);
     }},
    {"end/exit-on-thread", [] { OnJoinedThread(ExitFromThread); }},
    {"root/own-break", [] {
       auto** const own = static_cast<void**>(sbrk(4096));
       own[4] = malloc(61);
       own[5] = malloc(62);
       static_cast<void**>(own[5])[0] = malloc(63);
     }},
    {"end/atexit-frees", [] {
       g_interior = malloc(99);
       atexit([] { free(g_interior); });
     }},
    {"end/atexit-forgets", [] {
       g_interior = malloc(99);
       atexit([] { g_interior = nullptr; });
     }},
    {"thread/joined", [] { OnJoinedThread(LeakOnThread); }},
    {"thread/returned-and-dropped", [] { OnJoinedThread(ReturnBlock); }},
    {"thread/specific", [] {
       pthread_key_create(&g_key, nullptr);
       OnWaitingThread(HoldSpecific, nullptr);
     }}};

void Lose(Allocate function, Shape shape) {
  g_allocate = function;
  Make(shape, &g_in_bss);
  g_in_bss = {};
}

// Prints every name, or runs the one that is asked for.
class Chooser {
 public:
  explicit Chooser(const char* wanted) : wanted_(wanted) {}
  template <typename Function>
  void Case(const char* group, const char* middle, const char* last, Function run) {
    char name[128];
    snprintf(name, sizeof(name), "%s/%s/%s", group, middle, last);
    Case(name, run);
  }
  template <typename Function>
  void Case(const char* name, Function run) {
    if (wanted_ == nullptr) {
      char line[136];
      const int length = snprintf(line, sizeof(line), "%s\n", name);
      if (write(STDOUT_FILENO, line, static_cast<size_t>(length)) != length) _exit(1);
    } else if (strcmp(name, wanted_) == 0) {
      found_ = true;
      WipeStack();
      run();
      WipeStack();
    }
  }
  bool found() const { return found_ || wanted_ == nullptr; }

 private:
  const char* const wanted_;
  bool found_ = false;
};

}  // namespace

// Nothing here allocates but the case itself, so that both allocators give its blocks the same
// order in memory.
int main(int argc, char** argv) {
  if (argc != 2) return 2;
  Chooser chooser(strcmp(argv[1], "--list") == 0 ? nullptr : argv[1]);
  for (const NamedShape& shape : kShapes) {
    for (const NamedRoot& root : kRoots) {
      chooser.Case("shape", root.name, shape.name, [&] { root.root(shape.shape); });
    }
    for (const NamedFunction& function : kFunctions) {
      chooser.Case("lost", function.name, shape.name,
                   [&] { Lose(function.function, shape.shape); });
    }
  }
  for (const NamedHold& hold : kHolds) {
    for (const size_t bytes : kSizes) {
      char number[24];
      snprintf(number, sizeof(number), "%zu", bytes);
      if (bytes >= hold.least_bytes) {
        chooser.Case("size", hold.name, number, [&] { HoldBlock(hold.hold, bytes); });
      }
    }
  }
  for (const NamedCase& one : kCases) chooser.Case(one.name, one.run);
  if (!chooser.found()) {
    fprintf(stderr, "leak_corpus: no case is named %s; --list names them\n", argv[1]);
    return 2;
  }
  return 0;
}
