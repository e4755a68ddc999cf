/* Start of a Cortex-M without an operating system: data to RAM, zeros, the floating point unit, main. */
#include <stdint.h>

extern uint32_t data_from[], data_begin[], data_end[], zero_begin[], zero_end[], stack_top[];
int main(void);
void finish(int status);

void reset(void)
{
    const uint32_t *from = data_from;
    for (uint32_t *to = data_begin; to < data_end; ++to) *to = *from++;
    for (uint32_t *to = zero_begin; to < zero_end; ++to) *to = 0;
#if defined(__ARM_FP)
    *(volatile uint32_t *)0xE000ED88u |= 0xFu << 20;
    __asm__ volatile("dsb\n isb");
#endif
    finish(main());
}

static void fault(void) { finish(1); }

__attribute__((section(".vectors"), used)) static void (*const vectors[16])(void) = {
    (void (*)(void))stack_top, reset, fault, fault, fault, fault, fault, 0, 0, 0, 0, fault, fault, 0, fault, fault};
