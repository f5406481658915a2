/* opens_silent_plugin END PLUGIN: frees some blocks of malloc, opens the plugin and lets it work.
 * No stack of an event passes through that: its operator new or its malloc is not ours, and what of
 * an operator delete comes to free() has no stack. Then it ends as END says:
 *
 *   opened    by _exit, with the plugin open
 *   closed    the same when it was closed
 *   killed    by SIGKILL */
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "expect.h"

enum { kBlocks = 8 };

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  void* blocks[kBlocks];
  for (int i = 0; i < kBlocks; ++i) blocks[i] = malloc(16);
  for (int i = 0; i < kBlocks; ++i) free(blocks[i]);
  void* plugin = dlopen(argv[2], RTLD_NOW);
  if (plugin == NULL) {
    Tell("%s\n", dlerror());
    return 3;
  }
  int (*work)(void) = (int (*)(void))dlsym(plugin, "Work");
  Tell("%d\n", work());
  if (strcmp(argv[1], "closed") == 0) dlclose(plugin);
  if (strcmp(argv[1], "killed") == 0) raise(SIGKILL);
  _exit(0);
}
