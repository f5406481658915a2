// Blocks from malloc, freed, and objects from operator new that lie where these were, ended by the operator delete
// that is not told the size.
#include <cstdlib>
#include <cstring>

#include "expect.h"

namespace {

struct Object {
  char bytes[12];
};

}  // namespace

int main() {
  size_t bytes = 0;
  for (int i = 0; i < 200; ++i) {
    char* const text = strdup("hello world");
    bytes += strlen(text);
    free(text);
    void* const object = operator new(sizeof(Object));
    bytes += *static_cast<volatile char*>(memset(object, 1, sizeof(Object)));
    operator delete(object);
  }
  Tell("%zu bytes\n", bytes);
  return 0;
}
