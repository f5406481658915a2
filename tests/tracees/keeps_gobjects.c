/* A hundred objects of GObject whose class has private data, in an array, and a text on each: GLib is loaded
   by its name, so that the program needs nothing to be built. Exits with 77 where there is none. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  unsigned long type;
  const char* name;
  unsigned class_size, instance_size;
} Query; /* GTypeQuery */

enum { kObjects = 100, kGObject = 20 << 2 };

static unsigned long (*register_static)(unsigned long, const char*, unsigned, void (*)(void*, void*), unsigned,
                                        void (*)(void*, void*), unsigned);
static void (*query)(unsigned long, Query*);
static int (*add_private)(unsigned long, size_t);
static void (*adjust_private)(void*, int*);
static void* (*new_object)(unsigned long, const char*, ...);

static void* find(void* library, const char* name) {
  void* const found = dlsym(library, name);
  if (found == NULL) exit(77);
  return found;
}

static int private_at;
static void* kept[kObjects];

static void begin_class(void* its_class, void* data) {
  (void)data;
  adjust_private(its_class, &private_at);
}

static void begin_object(void* object, void* its_class) {
  (void)its_class;
  char* const text = malloc(300);
  strcpy(text, "held by what is private");
  memcpy((char*)object + private_at, &text, sizeof(text));
}

int main(void) {
  void* const library = dlopen("libgobject-2.0.so.0", RTLD_NOW);
  if (library == NULL) return 77;
  void* const found[] = {find(library, "g_type_register_static_simple"), find(library, "g_type_query"),
                         find(library, "g_type_add_instance_private"), find(library, "g_type_class_adjust_private_offset"),
                         find(library, "g_object_new")};
  memcpy(&register_static, &found[0], sizeof(void*));
  memcpy(&query, &found[1], sizeof(void*));
  memcpy(&add_private, &found[2], sizeof(void*));
  memcpy(&adjust_private, &found[3], sizeof(void*));
  memcpy(&new_object, &found[4], sizeof(void*));
  Query object;
  query(kGObject, &object);
  const unsigned long type = register_static(kGObject, "MemtraceTest", object.class_size, begin_class,
                                             object.instance_size, begin_object, 0);
  private_at = add_private(type, sizeof(void*));
  for (int i = 0; i < kObjects; ++i) kept[i] = new_object(type, NULL);
  return kept[7] == NULL;
}
