// temporary: blocks that are freed before their thread allocates again.
//
// FormatALine allocates a scratch buffer for each of 1000 lines and frees it at once: a buffer on
// the stack or one that is kept would save all that work. BuildAList allocates as often, but its
// blocks live on together and are no temporaries.
//
//   expect: /totals/allocations == 2000
//   expect: /totals/frees == 2000
//   expect: /totals/temporary_allocations == 1001
//   expect: site at @scratch in FormatALine: allocations == 1000, temporary == 1000
//   expect: site at @scratch in FormatALine: live_blocks == 0
//   expect: site at @node in BuildAList: allocations == 1000, temporary == 1
//
// One of the list's blocks is one too: the last, which is freed first.
#include <stdlib.h>

enum { kCount = 1000 };

struct Node {
  struct Node* next;
};

static void FormatALine(int number) {
  char* scratch = malloc(120);  // @scratch
  scratch[0] = (char)number;
  free(scratch);
}

static struct Node* BuildAList(void) {
  struct Node* first = NULL;
  for (int i = 0; i < kCount; ++i) {
    struct Node* node = malloc(sizeof(struct Node));  // @node
    node->next = first;
    first = node;
  }
  return first;
}

int main(void) {
  for (int i = 0; i < kCount; ++i) FormatALine(i);
  struct Node* node = BuildAList();
  while (node != NULL) {
    struct Node* next = node->next;
    free(node);
    node = next;
  }
  return 0;
}
