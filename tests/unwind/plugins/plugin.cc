// A plugin with one frame of MEMTRACE_PLUGIN_FRAME bytes. Its builds differ in nothing
// but that number, so that they are mapped alike; their CFI differs.

extern "C" [[gnu::visibility("default")]] void CallFromPlugin(void (*callee)()) {
  volatile char frame[MEMTRACE_PLUGIN_FRAME];
  frame[0] = 1;
  callee();
  frame[1] = 2;
}
