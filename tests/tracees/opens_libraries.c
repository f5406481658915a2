/* opens_libraries HOW DIRECTORY: opens the library of plugins/allocating_plugin.c as HOW says
 * and lets it allocate 50 blocks of 1733 bytes, of which this program frees them all.
 *
 *   plainly     dlopen by its path
 *   deepbind    the same with RTLD_DEEPBIND
 *   many        the same, after it has opened 0.so to 39.so of DIRECTORY so
 *   loaded      plainly, after it has opened with RTLD_DEEPBIND what is loaded already (libc, by its
 *               name and by its path, as the wrappers of cwrap do), and what is not there
 *   namespace   dlmopen, in a namespace of its own; it frees its blocks itself
 *   symbolic    plugins/symbolic_malloc.c, whose malloc is its own; it frees its blocks itself
 *   runpath     through a library that alone knows where it is (its RUNPATH)
 *
 * Then a forked child allocates once and ends. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "expect.h"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const char* how = argv[1];
  char path[4096];
  snprintf(path, sizeof(path), "%s/%s", argv[2],
           strcmp(how, "runpath") == 0    ? "libplugin_finder.so"
           : strcmp(how, "symbolic") == 0 ? "libplugin_symbolic.so"
                                          : "found_by_runpath/libplugin_allocating.so");
  for (int i = 0; strcmp(how, "many") == 0 && i < 40; ++i) {
    snprintf(path, sizeof(path), "%s/%d.so", argv[2], i);
    if (dlopen(path, RTLD_NOW | RTLD_DEEPBIND) == NULL) return 6;
  }
  const int deepbind = strcmp(how, "deepbind") == 0 || strcmp(how, "many") == 0;
  void* library = deepbind                        ? dlopen(path, RTLD_NOW | RTLD_DEEPBIND)
                  : strcmp(how, "namespace") == 0 ? dlmopen(LM_ID_NEWLM, path, RTLD_NOW)
                                                  : dlopen(path, RTLD_NOW);
  if (library != NULL && strcmp(how, "loaded") == 0) {
    Dl_info libc;
    if (dladdr((void*)&puts, &libc) == 0 ||
        dlopen("libc.so.6", RTLD_LAZY | RTLD_DEEPBIND) == NULL ||
        dlopen(libc.dli_fname, RTLD_LAZY | RTLD_DEEPBIND) == NULL ||
        dlopen("/no/such/library.so", RTLD_LAZY | RTLD_DEEPBIND) != NULL) {
      return 5;
    }
  }
  if (library != NULL && strcmp(how, "runpath") == 0) {
    void* (*find)(void) = (void* (*)(void))dlsym(library, "Find");
    library = find();
  }
  if (library == NULL) {
    Tell("%s\n", dlerror());
    return 3;
  }
  void* (*take)(void) = (void* (*)(void))dlsym(library, "Take");
  void (*give)(void*) = (void (*)(void*))dlsym(library, "Give");
  for (int i = 0; i < 50; ++i) {
    void* block = take();
    if (strcmp(how, "namespace") == 0 || strcmp(how, "symbolic") == 0) {
      give(block);
    } else {
      free(block);
    }
  }
  if (dlopen(NULL, RTLD_NOW) == NULL || dlopen("/no/such/library.so", RTLD_NOW) != NULL) return 4;
  if (fork() == 0) {
    free(malloc(1735));
    _exit(0);
  }
  wait(NULL);
  Tell("opened %s\n", how);
  return 0;
}
