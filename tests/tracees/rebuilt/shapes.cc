// Virtual functions, factories, classes of an unnamed namespace, cloning.
#include "keep.h"

namespace shapes {
namespace {

class Outline {
 public:
  explicit Outline(int points) : points_(Allocate(points)) { Touch(); }
  void Touch() { points_[0] = 1; }
  static char* Allocate(int points) { return Keep(new char[static_cast<size_t>(points)]); }

 private:
  char* points_;
};

class Round : public Shape {
 public:
  explicit Round(int radius) : radius_(radius) { trace_ = Keep(new Blob<3001>); }
  void Draw(int scale) override { Fill(scale * radius_); }
  Shape* Clone() const override { return Keep(new Round(*this)); }

 private:
  Round(const Round& other) : radius_(other.radius_) { trace_ = Keep(new Blob<3002>); }
  void Fill(int area) {
    if (area > 0) Keep(new Outline(3003));
  }
  int radius_;
  void* trace_;
};

class Angular : public Shape {
 public:
  explicit Angular(int side) : side_(side) {}
  void Draw(int scale) override {
    Edge(scale);
    Corner();
  }
  Shape* Clone() const override { return Keep(new Angular(side_)); }

 private:
  void Edge(int scale) { Keep(new Outline(3004 + 0 * scale)); }
  void Corner() {
    auto corner = [this] { return Keep(new Blob<3005>) != nullptr && side_ > 0; };
    corner();
  }
  int side_;
};

// The same name in two classes.
struct Left {
  static void Make() { Keep(new Blob<3006>); }
};
struct Right {
  static void Make() { Keep(new Blob<3007>); }
};

void Add(int) { Keep(new Blob<3008>); }
void Add(const std::string&) { Keep(new Blob<3009>); }
void Add(const std::vector<int>& many) { Keep(new char[3010 + many.size()]); }

struct Registry {
  Registry() { names_.assign(3019, 'n'); Keep(names_.data()); }
  ~Registry() { Keep(new Blob<3011>); }
  std::string names_;
};
Registry* g_registry = new Registry;

}  // namespace

std::unique_ptr<Shape> Circle(int radius) { return std::make_unique<Round>(radius); }

std::unique_ptr<Shape> Square(int side) {
  Left::Make();
  Right::Make();
  return std::make_unique<Angular>(side);
}

void DrawAll(const std::vector<std::unique_ptr<Shape>>& all) {
  for (const auto& shape : all) shape->Draw(2);
  for (const auto& shape : all) Keep(shape->Clone());
  Add(1);
  Add(std::string("text"));
  Add(std::vector<int>());
}

}  // namespace shapes
