// The second plugin of plugin_leak.c. Of the same shape as the first, so that it fits in its place.
#include <stdlib.h>

static char* volatile g_forgotten;

void SecondPluginLeaks(int times) {
  for (int i = 0; i < times; ++i) {
    g_forgotten = calloc(40, 100);
  }
}
