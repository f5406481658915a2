// A library whose constructor runs below ld.so's entry code, before main().

extern "C" void CalledBeforeMain();

namespace {
volatile int g_sink;
[[gnu::noinline]] void Deeper() {
  CalledBeforeMain();
  g_sink = 1;
}
[[gnu::constructor, gnu::noinline]] void Construct() {
  Deeper();
  g_sink = 2;
}
}  // namespace

extern "C" [[gnu::visibility("default")]] int EarlyLibrary() { return g_sink; }
