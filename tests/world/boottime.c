/* Adds the seconds that a file holds (BOOTTIME_FILE) to CLOCK_BOOTTIME, as if the machine had been suspended. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *time) {
  const char *name = getenv("BOOTTIME_FILE");
  FILE *file;
  long ahead = 0;
  int result = (int)syscall(SYS_clock_gettime, clock, time);
  if (result != 0 || clock != CLOCK_BOOTTIME || name == NULL || (file = fopen(name, "r")) == NULL)
    return result;
  if (fscanf(file, "%ld", &ahead) == 1)
    time->tv_sec += ahead;
  fclose(file);
  return result;
}
