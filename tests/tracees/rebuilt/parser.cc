// Recursive descent, containers, exceptions, strings.
#include "keep.h"

#include <map>
#include <set>
#include <stdexcept>

namespace parser {
namespace {

struct Node {
  char weight[4001];
  std::vector<Node*> children;
};

class Parser {
 public:
  explicit Parser(const std::string& text) : text_(text) {}
  Node* Expression() {
    Node* node = Term();
    while (Next('+')) node->children.push_back(Term());
    return node;
  }

 private:
  Node* Term() {
    if (Next('(')) {
      Node* inner = Expression();
      Next(')');
      return inner;
    }
    return Number();
  }
  Node* Number() {
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
    if (at_ > 100) throw std::runtime_error(std::string(4003, 'x'));
    return Keep(new Node());
  }
  bool Next(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  const std::string& text_;
  size_t at_ = 0;
};

using Names = std::map<std::string, std::string>;
Names* g_names;
std::vector<char>* g_stack;

void Remember(const std::string& name) {
  if (g_names == nullptr) g_names = new Names;
  (*g_names)[name] = std::string(4004, 'v');
  Keep(g_names);
}

void Push(size_t bytes) {
  if (g_stack == nullptr) g_stack = new std::vector<char>;
  g_stack->resize(bytes);
  Keep(g_stack->data());
}

template <typename Container>
void Fill(Container* container) {
  container->insert(container->end(), typename Container::value_type());
  Keep(container);
}

struct Record {
  char bytes[4021] = {};
  friend bool operator<(const Record& a, const Record& b) { return a.bytes[0] < b.bytes[0]; }
};
struct Other {
  char bytes[4121] = {};
};

std::string* Join(const std::vector<std::string>& parts) {
  auto* joined = new std::string;
  for (const std::string& part : parts) joined->append(part);
  return Keep(joined);
}

}  // namespace

void Parse(const std::string& text) {
  Parser parser(text);
  Keep(parser.Expression());
  Remember("first");
  Push(4006);
  Fill(Keep(new std::vector<Record>));
  Fill(Keep(new std::vector<Other>));
  Fill(Keep(new std::set<Record>));
  Join({std::string(4007, 'a')});
  try {
    const std::string many(200, '1');
    Parser(many).Expression();
  } catch (const std::runtime_error& error) {
    Keep(new std::string(error.what()));
  }
}

}  // namespace parser
