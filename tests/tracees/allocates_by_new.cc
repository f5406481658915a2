// Lost blocks from malloc and every operator new, in functions that call each other, so that
// stacks are equal in their innermost frames and differ further out: where two tools count
// frames differently, they make other loss records of them.
#include <cstddef>
#include <cstdlib>
#include <new>

#define NOINLINE __attribute__((noinline))

struct alignas(64) Wide {
  char bytes[128];
};

static void* volatile g_sink;
static NOINLINE void Lose(void* block) {
  g_sink = block;
  g_sink = nullptr;
}

static NOINLINE void One(int what) {
  switch (what) {
    case 0: Lose(malloc(100)); break;
    case 1: Lose(::operator new(200)); break;
    case 2: Lose(::operator new[](300)); break;
    case 3: Lose(::operator new(400, std::nothrow)); break;
    case 4: Lose(new Wide); break;
    case 5: Lose(::operator new(500)); break;  // another call, in the same function
  }
}
static NOINLINE void Two(int what) { One(what); asm volatile(""); }
static NOINLINE void Three(int what) { Two(what); asm volatile(""); }
static NOINLINE void OtherTwo(int what) { One(what); asm volatile(""); }
static NOINLINE void OtherThree(int what) { Two(what); asm volatile(""); }
static NOINLINE void FarApart(int what) { Three(what); asm volatile(""); }
static NOINLINE void Scrub() {
  volatile char stack[16384];
  for (size_t i = 0; i < sizeof(stack); ++i) stack[i] = static_cast<char>(i);
}

int main() {
  for (int what = 0; what < 6; ++what) {
    Two(what);
    Three(what);
    OtherTwo(what);
    OtherThree(what);
    FarApart(what);
  }
  Scrub();
  return 0;
}
