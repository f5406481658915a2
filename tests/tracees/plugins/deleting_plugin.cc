// A plugin that allocates by operator new alone, and ends that by the operator delete[] that is not
// told the size.
#include <cstddef>
#include <new>

extern "C" [[gnu::visibility("default")]] int Work() {
  int sum = 0;
  for (int i = 0; i < 64; ++i) {
    auto* const bytes = static_cast<volatile char*>(operator new[](16));
    bytes[0] = static_cast<char>(i);
    sum += bytes[0];
    operator delete[](const_cast<char*>(bytes));
  }
  return sum;
}
