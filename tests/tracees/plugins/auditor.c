/* An LD_AUDIT library that looks at every binding and allocates while it does, from the libc
 * of its own namespace. */
#define _GNU_SOURCE
#include <link.h>
#include <stdlib.h>
#include <string.h>

unsigned int la_version(unsigned int version) { return version; }

unsigned int la_objopen(struct link_map* map, Lmid_t space, uintptr_t* cookie) {
  (void)map, (void)space;
  *cookie = (uintptr_t)malloc(100);
  return LA_FLG_BINDTO | LA_FLG_BINDFROM;
}

uintptr_t la_symbind64(Elf64_Sym* symbol, unsigned int index, uintptr_t* from, uintptr_t* to,
                       unsigned int* flags, const char* name) {
  (void)index, (void)from, (void)to, (void)flags;
  char* copy = strdup(name);
  free(copy);
  return symbol->st_value;
}
