// The first plugin of plugin_leak.c.
#include <stdlib.h>

static char* volatile g_forgotten;

void FirstPluginLeaks(int times) {
  for (int i = 0; i < times; ++i) {
    g_forgotten = malloc(100);
  }
}
