/* The C part: wrappers, string functions, a table that grows, static functions of common names. */
#include <stdlib.h>
#include <string.h>
#include <stdio.h>

void *volatile g_kept;

struct table {
  char **rows;
  size_t count, room;
};

static void *checked_alloc(size_t size) {
  void *block = malloc(size);
  if (block == NULL) abort();
  return block;
}

static char *copy_text(const char *text, size_t size) {
  char *copy = checked_alloc(size);
  strncpy(copy, text, size - 1);
  copy[size - 1] = 0;
  return copy;
}

static void grow(struct table *table, size_t room) {
  table->rows = realloc(table->rows, room);
  table->room = room;
}

static void init(struct table *table) {
  memset(table, 0, sizeof *table);
  grow(table, 2001);
  g_kept = table->rows;
}

static void add(struct table *table, const char *text) {
  table->rows[table->count++] = copy_text(text, 2002);
  g_kept = table->rows[0];
}

static void add_twice(struct table *table) {
  add(table, "once");
  g_kept = copy_text("twice", 2003);
}

/* Ends in a call, as functions in C do. */
void *plain_alloc(size_t size) { return malloc(size); }

static void zeroed(void) {
  char *block = malloc(2004);
  if (block == NULL) return;
  memset(block, 0, 2004);
  g_kept = block;
}

static void walk(int depth) {
  if (depth == 0) {
    g_kept = calloc(1, 2005);
    return;
  }
  walk(depth - 1);
}

static int even(int n);
static int odd(int n) {
  g_kept = malloc(2006);
  return n == 0 ? 0 : even(n - 1);
}
static int even(int n) { return n == 0 ? 1 : odd(n - 1) + 1; }

typedef void (*handler)(struct table *);
static void on_open(struct table *table) {
  (void)table;
  g_kept = plain_alloc(2007);
}
static void on_close(struct table *table) {
  grow(table, 2008);
  g_kept = table->rows;
}
static handler g_handlers[] = {on_open, on_close};

static void dispatch(struct table *table, int which) { g_handlers[which & 1](table); }

void legacy_run(int depth) {
  static struct table table;
  init(&table);
  add(&table, "row");
  add_twice(&table);
  zeroed();
  walk(depth);
  g_kept = (void *)(size_t)even(depth);
  dispatch(&table, 0);
  struct table other = {0};
  dispatch(&other, 1);
}
