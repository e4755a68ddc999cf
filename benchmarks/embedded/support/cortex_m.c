/* Reads rows from the host by semihosting, answers each, and writes answer and SysTick's count for it. */
#include <stdint.h>

int answer(const ROW *x);

enum { OPEN = 1, WRITE = 5, READ = 6, EXIT = 0x18 };

static uint32_t host(uint32_t operation, const void *arguments)
{
    register uint32_t r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = arguments;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

void finish(int status)
{
    host(EXIT, (const void *)(status ? 0x20023u : 0x20026u));
    for (;;) {
    }
}

static uint32_t opened(const char *name, uint32_t length, uint32_t mode)
{
    const uint32_t arguments[3] = {(uint32_t)name, mode, length};
    return host(OPEN, arguments);
}

__attribute__((noinline)) static int nothing(const ROW *x)
{
    __asm__ volatile("" : : "r"(x));
    return 0;
}

static volatile uint32_t *const control = (uint32_t *)0xE000E010u, *const reload = (uint32_t *)0xE000E014u,
                               *const now = (uint32_t *)0xE000E018u;

/* The counter runs down, 24 bits. */
static uint32_t ticks_of(int (*f)(const ROW *), const ROW *x, int *result)
{
    const uint32_t start = *now;
    *result = f(x);
    return (start - *now) & 0xFFFFFFu;
}

int main(void)
{
    static ROW x[LENGTH];
    const uint32_t rows = opened("rows", 4, 1), answers = opened("answers", 7, 5);
    *reload = 0xFFFFFFu;
    *now = 0;
    *control = 5;
    for (;;) {
        const uint32_t input[3] = {rows, (uint32_t)x, sizeof x};
        uint32_t both[2];
        const uint32_t output[3] = {answers, (uint32_t)both, sizeof both};
        int found;
        if (host(READ, input)) return 0;
        both[1] = (uint32_t)0 - ticks_of(nothing, x, &found);
        both[1] += ticks_of(answer, x, &found);
        both[0] = (uint32_t)found;
        if (host(WRITE, output)) return 1;
    }
}
