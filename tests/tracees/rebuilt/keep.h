// What the parts of this program share. tests/e2e/fingerprint_test.cc builds it with several
// compilers and compares the names its call sites get.
//
// Every site keeps blocks of a size that no other site has, so that the test knows it again.

#ifndef KEEP_H_
#define KEEP_H_

#include <cstddef>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

extern "C" void* volatile g_kept;
extern "C" void legacy_run(int depth);

template <typename T>
T* Keep(T* block) {
  g_kept = block;
  return block;
}

template <size_t kBytes>
struct Blob {
  char bytes[kBytes];
  Blob() { bytes[0] = 1; }
};

// A pool of its own making, in a header: templates that all files instantiate.
template <typename T, typename Allocator = std::allocator<T>>
class Pool {
 public:
  T* Make() { return Keep(Construct()); }
  template <typename U>
  U* MakeOther() {
    U* other = new U;
    others_++;
    return Keep(other);
  }

 private:
  T* Construct() {
    T* block = allocator_.allocate(1);
    return new (block) T;
  }
  Allocator allocator_;
  int others_ = 0;
};

class Shape {
 public:
  virtual ~Shape() = default;
  virtual void Draw(int scale) = 0;
  virtual Shape* Clone() const = 0;
};

namespace shapes {
std::unique_ptr<Shape> Circle(int radius);
std::unique_ptr<Shape> Square(int side);
void DrawAll(const std::vector<std::unique_ptr<Shape>>& all);
}  // namespace shapes

namespace parser {
void Parse(const std::string& text);
}

namespace jobs {
void RunAll();
using Job = std::function<void(int)>;
}  // namespace jobs

#endif  // KEEP_H_
