#include "preload/unwind/stack_unwinder.h"
