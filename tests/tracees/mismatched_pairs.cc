// mismatched_pairs: blocks that end by another kind of function than they came from, and many that
// end as they should. Each pair has functions of its own. See ../e2e/mismatches_test.cc.
//
// `mismatched_pairs pointers` also frees through pointers to functions, whose names no instruction
// has.

#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <vector>

namespace {

// What neither the compiler nor a linker knows the contents of: it must not warn, pair or merge.
void* volatile g_block;
void* volatile g_nothing;
volatile int g_after;

// Not the last thing that a function does, or it would be a jump.
#define ENDS(statement) \
  do {                  \
    statement;          \
    g_after = 1;        \
  } while (0)
#define FUNCTION [[gnu::noinline, gnu::noclone]] void

struct alignas(64) Line {
  char bytes[64];
};

// Wrong, with the number of times in main().
FUNCTION NewThenFree() {
  g_block = new int(1);
  ENDS(std::free(g_block));
}
FUNCTION NewArrayThenFree() {
  g_block = new char[100];
  ENDS(std::free(g_block));
}
FUNCTION NewArrayThenDelete() {
  g_block = new int[10];
  ENDS(delete static_cast<int*>(g_block));
}
FUNCTION NewThenDeleteArray() {
  g_block = new char;
  ENDS(delete[] static_cast<char*>(g_block));
}
FUNCTION MallocThenDelete() {
  g_block = std::malloc(20);
  ENDS(delete static_cast<int*>(g_block));
}
FUNCTION CallocThenDeleteArray() {
  g_block = std::calloc(3, 7);
  ENDS(delete[] static_cast<char*>(g_block));
}
FUNCTION ReallocThenDelete() {
  g_block = std::realloc(g_nothing, 33);
  ENDS(::operator delete(g_block));
}
FUNCTION StrdupThenDelete() {
  g_block = strdup("a word");
  ENDS(delete static_cast<char*>(g_block));
}
FUNCTION NewThenRealloc() {
  g_block = new char[40];
  g_block = std::realloc(g_block, 80);
  ENDS(std::free(g_block));
}
FUNCTION AlignedNewThenFree() {
  g_block = new Line;
  ENDS(std::free(g_block));
}

// Right.
FUNCTION NewThenDelete() {
  g_block = new int(2);
  ENDS(delete static_cast<int*>(g_block));
}
FUNCTION NewArrayThenDeleteArray() {
  g_block = new std::string[4];
  ENDS(delete[] static_cast<std::string*>(g_block));
}
FUNCTION NothrowThenDelete() {
  g_block = new (std::nothrow) char[50];
  ENDS(delete[] static_cast<char*>(g_block));
  g_block = new (std::nothrow) int;
  ENDS(delete static_cast<int*>(g_block));
}
FUNCTION AlignedNewThenDelete() {
  g_block = new Line;
  ENDS(delete static_cast<Line*>(g_block));
  g_block = new Line[3];
  ENDS(delete[] static_cast<Line*>(g_block));
}
FUNCTION MallocThenFree() {
  g_block = std::malloc(60);
  ENDS(std::free(g_block));
  g_block = std::calloc(2, 60);
  g_block = std::realloc(g_block, 200);
  ENDS(std::free(g_block));
  g_block = std::aligned_alloc(64, 128);
  ENDS(std::free(g_block));
}
FUNCTION Containers() {
  std::map<std::string, std::vector<std::string>> words;
  for (int i = 0; i < 100; ++i) {
    words[std::string(30, static_cast<char>('a' + i % 20))].push_back(std::string(40, 'x'));
  }
  auto shared = std::make_shared<std::string>(50, 'y');
  const std::unique_ptr<char[]> array(new char[70]);
  g_block = array.get();
}

FUNCTION ThroughPointers() {
  void (*volatile release)(void*) = std::free;
  g_block = new int(3);
  ENDS(release(g_block));
}

}  // namespace

int main(int argc, char**) {
  for (int i = 0; i < 3; ++i) NewThenFree();
  NewArrayThenFree();
  for (int i = 0; i < 2; ++i) NewArrayThenDelete();
  NewThenDeleteArray();
  MallocThenDelete();
  CallocThenDeleteArray();
  ReallocThenDelete();
  StrdupThenDelete();
  NewThenRealloc();
  AlignedNewThenFree();
  for (int i = 0; i < 5; ++i) {
    NewThenDelete();
    NewArrayThenDeleteArray();
    NothrowThenDelete();
    AlignedNewThenDelete();
    MallocThenFree();
    Containers();
  }
  if (argc > 1) ThroughPointers();
}
