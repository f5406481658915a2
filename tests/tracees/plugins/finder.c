/* Only this library's RUNPATH leads to the one it opens. */
#include <dlfcn.h>
#include <stddef.h>

void* Find(void);
void* Find(void) { return dlopen("libplugin_allocating.so", RTLD_NOW); }
