#include "keep.h"

static int Run(int arguments) {
  legacy_run(3 + arguments);
  std::vector<std::unique_ptr<Shape>> all;
  all.push_back(shapes::Circle(3));
  all.push_back(shapes::Square(4));
  shapes::DrawAll(all);
  parser::Parse("1+(2+3)");
  jobs::RunAll();
  for (std::unique_ptr<Shape>& shape : all) shape.release();
  return 0;
}

int main(int argc, char**) { return Run(argc); }
