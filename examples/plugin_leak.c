// plugin_leak: leaks in plugins that are no longer loaded at the end.
//
// Two plugins are opened, called and closed one after the other, which usually puts the second
// where the first had been. Each leak is still reported with the function, file and line of its own
// plugin.
//
//   expect: leak 300 bytes in 3 blocks in FirstPluginLeaks
//   expect: leak 4000 bytes in 1 block in SecondPluginLeaks
//   expect: text "plugin_leak_first\.c:\d+"
//   expect: text "plugin_leak_second\.c:\d+"
#include <dlfcn.h>
#include <stddef.h>

static int CallPlugin(const char* library, const char* function, int times) {
  void* plugin = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (plugin == NULL) return 1;
  void (*call)(int) = (void (*)(int))dlsym(plugin, function);
  if (call == NULL) return 1;
  call(times);
  return dlclose(plugin);
}

int main(void) {
  return CallPlugin("libplugin_leak_first.so", "FirstPluginLeaks", 3) ||
         CallPlugin("libplugin_leak_second.so", "SecondPluginLeaks", 1);
}
