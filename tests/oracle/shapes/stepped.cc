// Small functions for stepped_code_test, which stops at each of their instructions: prologues,
// epilogues, calls through the PLT. Built many times over, as shapes.cc is.

#include <alloca.h>
#include <setjmp.h>
#include <string.h>
#include <unistd.h>

namespace {

volatile int g_sink;

[[gnu::noinline]] void Use(const volatile void* data) {
  g_sink = g_sink + *static_cast<const volatile char*>(data);
}

[[gnu::noinline]] long ManyRegisters(long a, long b, long c, long d, long e, long f, int depth) {
  if (depth > 0) g_sink = static_cast<int>(ManyRegisters(f, a, b, c, d, e, depth - 1));
  return a * 3 + b * 5 + c * 7 + d * 11 + e * 13 + f * 17 + g_sink;
}

[[gnu::noinline]] void Alloca(size_t bytes) {
  char* block = static_cast<char*>(alloca(bytes));
  block[0] = 1;
  Use(block);
}

[[gnu::noinline]] void VariableLengthArray(int n) {
  __extension__ volatile char block[n];
  block[n - 1] = 1;
  if (n > 20) VariableLengthArray(n / 2);
  Use(block);
}

[[gnu::noinline]] void Realigned(long a, long b, long c, long d, long e, long f, long on_stack) {
  alignas(64) char block[64];
  block[0] = static_cast<char>(on_stack + a + b + c + d + e + f);
  char* dynamic = static_cast<char*>(alloca(static_cast<size_t>(16 + on_stack)));
  dynamic[0] = block[0];
  Use(block);
  Use(dynamic);
}

[[gnu::noinline]] void RealignedPlain() {
  alignas(128) double block[8];
  for (int i = 0; i < 8; ++i) block[i] = g_sink + i;
  Use(block);
}

[[gnu::noinline]] void HugeFrame() {
  volatile char block[70000];
  block[0] = 1;
  Use(block);
}

[[gnu::noinline]] int TailCallee(int n) { return n + g_sink; }
[[gnu::noinline]] int TailCaller(int n) {
  Use(&n);
  return TailCallee(n + 1);
}

[[gnu::noinline]] void ManyExits(int n) {
  volatile char frame[300];
  frame[0] = 1;
  if (n == 1) return;
  Use(frame);
  if (n == 2) return;
  for (int i = 0; i < n; ++i) Use(frame + 0);
}

[[gnu::noinline]] void ThroughLibc() {
  char from[200], to[200];
  memset(from, g_sink & 15, sizeof(from));
  memcpy(to, from, sizeof(to));
  g_sink = g_sink + memcmp(from, to, sizeof(to)) + static_cast<int>(getppid() & 1);
}

jmp_buf g_jump;
[[gnu::noinline]] void JumpFrom(int depth) {
  if (depth == 0) longjmp(g_jump, 1);
  JumpFrom(depth - 1);
  g_sink = g_sink + 1;
}
[[gnu::noinline]] void LongJump() {
  if (setjmp(g_jump) == 0) JumpFrom(3);
}

}  // namespace

extern "C" [[gnu::visibility("default")]] void RunStepped() {
  ManyRegisters(1, 2, 3, 4, 5, 6, 3);
  Alloca(100);
  VariableLengthArray(60);
  Realigned(1, 2, 3, 4, 5, 6, 7);
  RealignedPlain();
  HugeFrame();
  g_sink = TailCaller(5);
  for (int n = 1; n < 4; ++n) ManyExits(n);
  ThroughLibc();
  LongJump();
}
